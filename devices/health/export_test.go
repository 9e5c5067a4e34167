package health

import "iter"

var effectNames = [...]string{"application", "notice", "watch", "suspicious", "fatal"}

// String returns the class's name.
func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return "unknown"
}

// Catalog yields every number of the catalogue with the verdict, ascending.
func Catalog() iter.Seq2[uint64, Verdict] {
	return func(yield func(uint64, Verdict) bool) {
		for _, r := range catalog {
			for number := r.first; number <= r.last; number++ {
				if !yield(number, r.Verdict) {
					return
				}
			}
		}
	}
}
