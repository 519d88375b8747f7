"""What archsim's JSON files hold, as JSON Schema 2020-12: contents page.

`result` is the saved result, `outputs` what `compare` and `paper` print, `words` what schemas are
made of, `check` refuses what does not fit, `versions` reads results of before, and `page` makes
the tables of `docs/result-json.md`.  The schemas lie as files in `docs/schema/`.
"""
