package main

import "go/types"

// stateFolders are the packages whose structs hold the state of the coordinator and
// of the agent: other packages read their exported fields, and change them by
// methods alone. The rooms of a folder are among them.
var stateFolders = []string{
	"agent/ledger", "coordinator/cluster", "coordinator/follow", "coordinator/lead", "coordinator/objects",
	"coordinator/queue", "coordinator/quota", "coordinator/sched", "coordinator/txn", "fit",
}

// assignedOutside counts, for each struct of the state packages, the statements of
// other packages with a write of the struct.
func (c *code) assignedOutside() []figure {
	counts, notes := map[*types.Named]int{}, map[*types.Named]string{}
	for _, w := range c.writes {
		if w.of.Obj().Pkg() == w.in.Types {
			continue
		}
		if folder, ok := c.tree.Local(w.of.Obj().Pkg().Path()); ok && isState(folder) {
			counts[w.of]++
			notes[w.of] = "the last by " + w.in.Folder + "." + w.by.Name()
		}
	}
	var out []figure
	for named, n := range counts {
		out = append(out, figure{kind: "assigned", of: c.nameOf(named), value: n, note: notes[named]})
	}
	return out
}

func isState(folder string) bool {
	for _, f := range stateFolders {
		if folder == f || room(folder) == f {
			return true
		}
	}
	return false
}
