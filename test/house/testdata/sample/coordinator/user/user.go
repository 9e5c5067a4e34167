package user

import "example.org/sample/coordinator/txn"

func change(m *txn.Machine) {
	m.Vote = 1
	m.Votes["a"]++
	delete(m.Votes, "b")
}

func build() txn.Machine {
	m := txn.Machine{}
	m.Vote = 1
	return m
}
