package through

type door interface{ open(int) }

type house struct{ door door }

func (h *house) enter(n int) { h.door.open(n) }

type gate struct{ house *house }

func (g *gate) open(n int) {
	if n > 0 {
		g.pass(n)
	}
}

func (g *gate) pass(n int) { g.house.enter(n - 1) }
