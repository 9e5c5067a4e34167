package values

type event struct{ done func(int) }

type loop struct{ events []event }

func (l *loop) run() {
	l.events[0].done(1)
}

func (l *loop) add(e event) {
	l.events = append(l.events, e)
	l.run()
}
func begin(l *loop) { l.add(event{done: func(n int) { next(l, n) }}) }

func next(l *loop, n int) {
	if n > 0 {
		begin(l)
	}
}
