package txn

// Machine is state that other packages may read.
type Machine struct {
	Vote  int
	Votes map[string]int
}
