package ranked

import "iter"

// total returns the sum of a subtree, and computes those below it that are
// stale.
func (e *Entry[K, V, S]) total() (sum S) {
	if e == nil {
		return sum
	}
	if e.stale {
		e.sum, e.stale = e.value.Sum(e.left.total(), e.right.total()), false
	}
	return e.sum
}

// SumBefore returns the sum of all entries before one of the tree. It takes
// O(log n), and O(1) for each sum that became stale since the last time.
func (t *Tree[K, V, S]) SumBefore(e *Entry[K, V, S]) S {
	sum := e.left.total()
	for ; e.parent != nil; e = e.parent {
		if e == e.parent.right {
			sum = e.parent.value.Sum(e.parent.left.total(), sum)
		}
	}
	return sum
}

// Select yields, in order, the entries whose own sum has something. Where the
// sum of a subtree does not have it, none of its entries may: those are passed
// over at once, so that k entries take O(k log n). The tree must not change
// meanwhile.
func (t *Tree[K, V, S]) Select(has func(S) bool) iter.Seq[*Entry[K, V, S]] {
	return func(yield func(*Entry[K, V, S]) bool) { t.root.pick(has, yield) }
}

// pick yields the selected entries of a subtree, until yield returns false.
func (e *Entry[K, V, S]) pick(has func(S) bool, yield func(*Entry[K, V, S]) bool) bool {
	if e == nil || !has(e.total()) {
		return true
	}
	var none S
	return e.left.pick(has, yield) && (!has(e.value.Sum(none, none)) || yield(e)) && e.right.pick(has, yield)
}
