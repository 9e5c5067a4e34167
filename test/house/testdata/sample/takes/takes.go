package takes

// Taken has no method, and three functions write it.
type Taken struct{ n, m int }

func first(t *Taken)         { t.n = 1 }
func second(k int, t *Taken) { t.n += k }
func third(t *Taken, k int)  { t.m, k = k, 0 }

func reads(t *Taken) int { return t.n }

func makes() Taken { t := Taken{n: 1}; t.m = 2; return t }
