"""Energy and area of actions and components.  Empty until the energy tables land."""
