package embeds

type low struct{ n int }

func (l *low) one() int { return l.n }
func (l *low) two() int { return l.n + 1 }

// High has three methods: one of its own, two of low's.
type High struct{ *low }

// Three is High's own method.
func (h High) Three() int { return h.one() + h.two() }
