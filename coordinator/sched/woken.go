package sched

import "github.com/musterd/muster/coordinator/queue"

// woken is a heap of the classes that are awake, by their first units.
type woken []*Class

// Len counts the classes.
func (w woken) Len() int { return len(w) }

// Less orders classes by their first units.
func (w woken) Less(i, j int) bool { return queue.Compare(w[i].head, w[j].head) < 0 }

// Swap exchanges two classes.
func (w woken) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].awake, w[j].awake = i+1, j+1
}

// Push adds a class at the end.
func (w *woken) Push(x any) {
	c := x.(*Class)
	*w = append(*w, c)
	c.awake = len(*w)
}

// Pop removes the class at the end.
func (w *woken) Pop() any {
	last := len(*w) - 1
	c := (*w)[last]
	(*w)[last] = nil
	*w, c.awake = (*w)[:last], 0
	return c
}
