package cluster

import (
	"slices"
	"strings"
)

// longestRun is the most nodes of a run: to insert or remove a node moves fewer.
const longestRun = 256

// nodeList is a set of nodes, ascending by ID. The zero value is empty.
//
// Invariant: no run is empty or longer than longestRun; nodes ascend within runs
// and from run to run.
type nodeList struct {
	runs [][]*Node
	len  int
}

// insert adds a node that is not in the list.
func (l *nodeList) insert(n *Node) {
	l.len++
	if len(l.runs) == 0 {
		l.runs = [][]*Node{{n}}
		return
	}
	i := min(l.runOf(n), len(l.runs)-1)
	at, _ := slices.BinarySearchFunc(l.runs[i], n, compareNodes)
	l.runs[i] = slices.Insert(l.runs[i], at, n)
	if whole := l.runs[i]; len(whole) > longestRun {
		half := len(whole) / 2
		l.runs = slices.Insert(l.runs, i+1, slices.Clone(whole[half:]))
		clear(whole[half:])
		l.runs[i] = whole[:half]
	}
}

// remove takes a node out of the list that has it.
func (l *nodeList) remove(n *Node) {
	l.len--
	i := l.runOf(n)
	at, _ := slices.BinarySearchFunc(l.runs[i], n, compareNodes)
	l.runs[i] = slices.Delete(l.runs[i], at, at+1)
	if len(l.runs[i]) == 0 {
		l.runs = slices.Delete(l.runs, i, i+1)
	}
}

// runOf returns the first run that ends with the node or behind it.
func (l *nodeList) runOf(n *Node) int {
	i, _ := slices.BinarySearchFunc(l.runs, n, func(run []*Node, n *Node) int { return compareNodes(run[len(run)-1], n) })
	return i
}

func compareNodes(a, b *Node) int { return strings.Compare(string(a.ID), string(b.ID)) }
