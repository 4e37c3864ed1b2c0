package sim

// kind is the category of an item. It determines the distribution of its value.
type kind uint8

const (
	stickerKind kind = iota
	slabKind
	weaponKind
	statTrakKind
	souvenirKind
	knifeKind
	gloveKind
	graffitiKind
	highlightKind
	containerKind
	musicKind
	agentKind
	patchKind
	charmKind
	pinKind
	kinds
)

// quantiles holds, for each kind, the values of items in cents at the ranks of
// quantileRanks. The rounded values follow the distribution of real asks.
var quantiles = [kinds][9]int64{
	stickerKind:   {3, 5, 22, 170, 850, 4_000, 15_000, 60_000, 150_000},
	slabKind:      {28, 70, 130, 400, 2_000, 11_000, 35_000, 120_000, 180_000},
	weaponKind:    {3, 9, 55, 370, 2_200, 11_000, 32_000, 80_000, 160_000},
	statTrakKind:  {10, 42, 120, 550, 3_000, 13_000, 30_000, 65_000, 150_000},
	souvenirKind:  {3, 30, 220, 1_200, 6_000, 25_000, 70_000, 150_000, 190_000},
	knifeKind:     {5_000, 8_500, 12_500, 21_000, 46_000, 88_000, 125_000, 170_000, 200_000},
	gloveKind:     {4_200, 7_400, 14_000, 24_000, 56_000, 110_000, 145_000, 180_000, 200_000},
	graffitiKind:  {3, 4, 6, 35, 115, 480, 900, 1_600, 4_000},
	highlightKind: {9, 13, 18, 50, 150, 400, 900, 2_200, 6_000},
	containerKind: {12, 60, 320, 930, 2_800, 9_500, 40_000, 140_000, 190_000},
	musicKind:     {75, 150, 240, 430, 720, 1_000, 2_000, 3_500, 8_000},
	agentKind:     {100, 850, 1_400, 3_100, 6_300, 12_000, 25_000, 60_000, 90_000},
	patchKind:     {24, 60, 210, 460, 1_500, 2_900, 5_500, 11_000, 20_000},
	charmKind:     {10, 15, 25, 90, 600, 3_400, 8_000, 17_500, 30_000},
	pinKind:       {400, 430, 490, 790, 1_200, 4_000, 5_500, 7_000, 9_000},
}

// quantileRanks are the ranks of the quantiles, from 0 to one in fixed point.
var quantileRanks = [9]int64{0, one / 10, one / 4, one / 2, one * 3 / 4, one * 9 / 10, one * 97 / 100, one * 99 / 100, one}

// Bounds of an item's value. Three cents is the lowest price of a real listing. The
// maximum is about the price of the largest real trades.
const (
	minValue mil = 30
	maxValue mil = 2_040_000
)

// valueAt returns the value of an item of a kind at a rank in [0, one), times a
// factor in thousandths. With uniformly distributed ranks, the values follow the
// quantiles.
func valueAt(k kind, rank int, factor int64) mil {
	r := int64(rank)
	i := 0
	for r >= quantileRanks[i+1] {
		i++
	}
	from, to := quantileRanks[i], quantileRanks[i+1]
	low, high := quantiles[k][i]*10, quantiles[k][i+1]*10
	// Interpolate with a convex curve, because prices are close to log-normal.
	x := (r - from) * one / (to - from)
	v := low + (high-low)*(x*x/one+x)/(2*one)
	return min(max(v*factor/1000, minValue), maxValue)
}
