package txn

// Machine is state with two fields and two functions to change Vote.
type Machine struct {
	Vote  int
	Votes map[string]int
}

func (m *Machine) step() { m.Vote++ }

func (m *Machine) again() { m.step() }

func look(m *Machine) int { return m.Vote }
