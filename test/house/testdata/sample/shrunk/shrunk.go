package shrunk

// Shrunk had five methods when it was listed.
type Shrunk struct{}

func (Shrunk) a() {}
func (Shrunk) b() {}
func (Shrunk) c() {}
func (Shrunk) d() {}
