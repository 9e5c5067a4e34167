package ranked

// The balance: no side weighs more than delta times the other one, and a
// rotation is double where the inner grandchild weighs gamma times the outer
// one or more. With 3 and 2 one rotation for each entry on the way up is enough
// after an insertion or a deletion (Hirai and Yamamoto, "Balancing weight-balanced
// trees", Journal of Functional Programming 21, 2011).
const (
	delta = 3
	gamma = 2
)

func (e *Entry[K, V, S]) len() int {
	if e == nil {
		return 0
	}
	return e.size
}

func (e *Entry[K, V, S]) weight() int { return e.len() + 1 }

// first returns the first entry of a subtree, nil of an empty one.
func (e *Entry[K, V, S]) first() *Entry[K, V, S] {
	for e != nil && e.left != nil {
		e = e.left
	}
	return e
}

func (e *Entry[K, V, S]) setLeft(child *Entry[K, V, S]) {
	if e.left = child; child != nil {
		child.parent = e
	}
}

func (e *Entry[K, V, S]) setRight(child *Entry[K, V, S]) {
	if e.right = child; child != nil {
		child.parent = e
	}
}

// recount takes over a change of the subtree.
func (e *Entry[K, V, S]) recount() { e.size, e.stale = e.left.len()+e.right.len()+1, true }

// replace puts a subtree, which may be empty, where another one hangs.
func (t *Tree[K, V, S]) replace(e, by *Entry[K, V, S]) {
	switch p := e.parent; {
	case p == nil:
		if t.root = by; by != nil {
			by.parent = nil
		}
	case p.left == e:
		p.setLeft(by)
	default:
		p.setRight(by)
	}
}

// restore recounts and balances from an entry up to the root.
func (t *Tree[K, V, S]) restore(e *Entry[K, V, S]) {
	for ; e != nil; e = e.parent {
		e.recount()
		left, right := e.left.weight(), e.right.weight()
		switch {
		case right > delta*left:
			if e.right.left.weight() >= gamma*e.right.right.weight() {
				t.lift(e.right.left)
			}
			t.lift(e.right)
			e = e.parent
		case left > delta*right:
			if e.left.right.weight() >= gamma*e.left.left.weight() {
				t.lift(e.left.right)
			}
			t.lift(e.left)
			e = e.parent
		}
	}
}

// lift rotates an entry above its parent. Their order stays.
func (t *Tree[K, V, S]) lift(e *Entry[K, V, S]) {
	p := e.parent
	t.replace(p, e)
	if e == p.left {
		p.setLeft(e.right)
		e.setRight(p)
	} else {
		p.setRight(e.left)
		e.setLeft(p)
	}
	p.recount()
	e.recount()
}
