"""What is said below the rows of Parashar et al.: suppositions, differences, what was chosen."""

from __future__ import annotations

from archsim.papers import scnn_energy_rows
from archsim.papers.scnn_what_if import MEMORIES
from workloads.sparse import MEASURED_CLUSTERING

NOTES = (
    "Note 1. Zeros are drawn (seed 0) at figure 1's densities, evenly scattered; that flatters the "
    "balance between PEs and hurts the filling of vectors. 'Clustered' zeros come in patches and "
    f"channels, with the generator's clustering at {MEASURED_CLUSTERING}, at which tiles' "
    "densities spread as those of SqueezeNet's activations on photographs do. Nothing is fitted "
    "to the paper's results.",
    "Note 2. DCNN is dot products of 16 channels in 64 PEs with the same tiles. With its cycles, "
    "the paper's bars add up to the paper's means of GoogLeNet and VGG-16 within 1 %, so these are "
    "ratios of total time. It starves where there are 3 channels. AlexNet's conv1 has 1.86 for an "
    "oracle, which such a DCNN does not give; one that folds the stride of 4 into 48 channels and "
    "tiles its 57 × 57 input does, within 5 %. The paper does not say so: a supposition.",
    "Note 3. Figure 1 has two of GoogLeNet's nine modules; the densities of the others are "
    "interpolated between them, so their oracle differs already.",
    "Note 4. Utilisation is multiplications over lanes of the pairs of vectors multiplied: "
    "fragmentation alone. Idle is all PE cycles at barriers, in halo and output after the last "
    "one, and in PEs that the plane does not reach (28 × 28 and 14 × 14 fill 49 of 64). The paper "
    "defines neither; with these the utilisation of GoogLeNet 3a and 5b, whose densities are "
    "known, comes out as published within 2 points.",
    "Note 5. In the paper's own bars speed-up over oracle is utilisation times (1 − idle), times "
    "0.76 to 1.09 in 25 of the 27 (VGG-16 conv2_1 and conv2_2: 0.57 and 0.55, unexplained). So "
    "bank conflicts and the broadcast cost its model next to nothing in VGG-16, a fifth in the "
    "later layers of the others. It says that twice as many banks as products reduce contention "
    "sufficiently, and describes no queue. Without one a pair holds its PE until the fullest bank "
    "has taken all its products, and conflicts take 14 to 30 % of the networks' PE cycles; here a "
    "queue of 4 stands before each bank, and they take less than 1 % (rows 'queues of' 1, which "
    "is none, 2, 4, 8). Queues, and one vector of weights broadcast a cycle to PEs that cannot run "
    "ahead further than their FIFO of 50, are choices of ours.",
    "Note 6. 'Pairs alone' counts only pairs of vectors, in the PE with most, which no queue and "
    "no FIFO can better: not conflicts, waiting, empty blocks, barriers, halo. 'All' is pairs "
    f"alone with clustered zeros and memories of {MEMORIES} times the size, so that fewer planes "
    "are cut into strips (of conv1_2's whole plane, though, a PE has sums for one filter at a "
    "time). 'As DNNsim counts' is DCNN over that simulator's own count of cycles, to the cycle "
    "(benchmarks/dnnsim.md): a barrier after each channel, its hash of banks, 6144 sums, its rule "
    "of Kc, halos one sum at a time, no queues, no placeholders, no strips, and neither loads, "
    "broadcast nor output; of all filters. What else needs another core or other zeros is ours "
    "times a ratio measured on one of 16 of a layer's filters, at least 32. The sweep is "
    "of such samples of the modules 3a, 4e and 5a.",
    "Note 7. The paper's own inconsistencies: 64 PEs have 7.9 mm² in Table 4 and about 7.4 in the "
    "introduction; the rule that sets Kc is not published (8 is quoted for one layer, and is the "
    "most here); nine layers of VGG-16 do not fit its memories, but how they are cut is not said. "
    "SparseW at a density of 0.1 takes 0.11 of its dense cycles, so its vectors stay full; lists "
    "of 8 filters of a 1 × 1 kernel, with 0.8 weights each, would not. Its Kc may be larger there, "
    "or lists may go on over channels; but then GoogLeNet 5b's utilisation would be above 20 %.",
    *scnn_energy_rows.NOTES,
)

__all__ = ["NOTES"]
