package kept

// Kept had three methods when it was listed.
type Kept struct{}

func (Kept) a() {}
