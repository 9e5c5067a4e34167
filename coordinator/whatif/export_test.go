package whatif

// BoundOnNodes is the bound of OnNodes as it is found with a look at every node.
func (w *World) BoundOnNodes(u *Unit) (Bound, bool) { return w.neverOnNodes(u) }
