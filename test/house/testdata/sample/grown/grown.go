package grown

// Grown had three methods when it was listed.
type Grown struct{}

func (Grown) a() {}
func (Grown) b() {}
func (Grown) c() {}
func (Grown) d() {}
