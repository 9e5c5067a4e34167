package set

type door struct {
	open  bool
	width int
}

func (d *door) setWidth(w int) { d.width = w }
func (d *door) setOpen()       { d.open = true }

type gate struct {
	door   *door
	opened int
}

func (g *gate) setDoor(w float64) { g.door.width = int(w); g.door.open = false }
func (g *gate) enter()            { g.door.open, g.opened = true, g.opened+1 }
