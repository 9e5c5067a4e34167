package writers

// A and B have two methods each, and each writes the other.
type (
	A struct{ n int }
	B struct{ n int }
)

func (a *A) own()       { a.n++ }
func (a *A) write(b *B) { b.n++; a.own() }
func (b *B) own()       { b.n++ }
func (b *B) write(as []*A) {
	for _, a := range as {
		a.n++
	}
	b.own()
}
