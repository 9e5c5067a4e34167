package captures

// Captured has one method, and two closures write it.
type Captured struct{ n int }

func (c *Captured) calls(do func(func())) {
	do(func() { c.n++ })
	do(func() { do(func() { c.n-- }) })
	do(func() { _ = c.n })
}
