package monitor

// Other is the label of everything that has no series of its own.
const Other = "other"

// The most values of each label. Operators choose the names of nodes, quotas and
// trees, tenants those of namespaces and queues, hosts those of models.
const (
	MostNodes      = 10_000
	MostNamespaces = 1_000
	MostQueues     = 100
	MostModels     = 100
	MostQuotas     = 1_000 // in all namespaces
	MostTreeNodes  = 2_000 // in all trees
)

// bound gives the first names that it sees labels of their own, and all others the
// label Other. A name keeps its label as long as it is there: without that a series
// could change its meaning from one scrape to the next.
type bound struct {
	most  int
	known map[string]bool // whether the name was there in this round
}

func newBound(most int) *bound { return &bound{most: most, known: map[string]bool{}} }

// begin starts a round: names that it does not see give their labels back.
func (b *bound) begin() {
	for name, seen := range b.known {
		if !seen {
			delete(b.known, name)
		}
	}
	for name := range b.known {
		b.known[name] = false
	}
}

// label is the name itself or Other. A name that is Other's shares its series.
func (b *bound) label(name string) string {
	if _, is := b.known[name]; is {
		b.known[name] = true
		return name
	}
	if len(b.known) >= b.most || name == Other {
		return Other
	}
	b.known[name] = true
	return name
}
