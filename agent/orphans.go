package agent

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
)

// OrphansConfig sets the treatment of free devices that some process uses.
type OrphansConfig struct {
	// Enabled keeps them from being handed out.
	Enabled bool
	// Ignore are command names of processes that may run beside any grant.
	Ignore []string
}

// DefaultIgnore are the programs that use devices on behalf of the host.
var DefaultIgnore = []string{"Xorg", "Xwayland", "gnome-shell", "nvidia-persistenced", "nvidia-cuda-mps-server"}

// commLength is the most of a command's name that the kernel keeps, in bytes
// (TASK_COMM_LEN less its end, proc(5)).
const commLength = 15

// sighting lists the processes last seen on each device and instance, by UUID.
// It is immutable.
type sighting map[string][]process

type process struct {
	pid  int
	name string // "" where it is not known: it has ended, or is of another PID namespace
}

// with returns the sighting after news, less the processes that are ignored.
func (s sighting) with(news []devices.Running, ignore []string, nameOf func(pid int) string) sighting {
	next := sighting{}
	for uuid, list := range s {
		next[uuid] = list
	}
	for _, r := range news {
		list := []process{}
		for _, pid := range r.PIDs {
			name := nameOf(pid)
			if !slices.ContainsFunc(ignore, func(i string) bool { return name != "" && i[:min(len(i), commLength)] == name }) {
				list = append(list, process{pid, name})
			}
		}
		next[r.UUID] = list
	}
	return next
}

// observed is the sighting as the ledger takes it.
func (s sighting) observed() ledger.Observed {
	var c ledger.Observed
	for uuid, list := range s {
		if len(list) > 0 {
			c.Busy = append(c.Busy, uuid)
		} else {
			c.Idle = append(c.Idle, uuid)
		}
	}
	return c
}

// commandName is the name of a process's command, as one printable word.
func commandName(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == ' ' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSuffix(string(text), "\n"), "?"))
}

// seen is the last sighting.
func (a *Agent) seen() sighting {
	if s := a.sighting.Load(); s != nil {
		return *s
	}
	return nil
}

// sight takes a new list of processes.
func (a *Agent) sight(news []devices.Running) {
	if a.config.Orphans.Enabled && len(news) > 0 {
		next := a.seen().with(news, a.config.Orphans.Ignore, a.deps.ProcessName)
		a.sighting.Store(&next)
	}
}

// observed is the last sighting for the ledger. Without orphans every one that
// a journal remembers is free.
func (o *owner) observed() ledger.Observed {
	if o.agent.config.Orphans.Enabled {
		return o.agent.seen().observed()
	}
	var c ledger.Observed
	for _, g := range o.ledger.Snapshot().Grants {
		if uuid, ok := ledger.OrphanUUID(g.Tx); ok {
			c.Idle = append(c.Idle, uuid)
		}
	}
	return c
}

// explain makes orphans of freed devices on which a process was last seen, and
// gives the other freed devices of the kubelet's pool to the pool, before any other
// grant can get them.
func (o *owner) explain() {
	if !o.vacated {
		return
	}
	o.explainOrphans()
	o.fillPool()
	o.vacated = false
}

// explainOrphans is the orphans' part. Often the process has just ended, so
// explainOrphans asks for a new list.
func (o *owner) explainOrphans() {
	if o.cleared {
		return
	}
	o.cleared = !o.agent.config.Orphans.Enabled && o.ledger.Registration() > 0
	before := o.ledger.Hash()
	o.apply(o.observed())
	if o.ledger.Hash() == before {
		return
	}
	o.orphaned = true
	c, _ := o.agent.orphans(o.ledger.Snapshot())
	o.log.Warn("orphans_changed", "orphans", c.True, "message", c.Message)
	o.hurry()
}

// tellOrphans sends the leader the whole occupancy, once orphans have changed.
func (o *owner) tellOrphans() {
	if o.orphaned {
		o.orphaned = false
		o.tell(o.occupancy())
	}
}

// orphans is the condition about them, ok where there may be any.
func (a *Agent) orphans(v *ledger.View) (c rpc.Condition, ok bool) {
	c = rpc.Condition{Type: "OrphanProcesses", Reason: "AllExplained"}
	seen := a.seen()
	var list []string
	for _, g := range v.Grants {
		if uuid, ok := ledger.OrphanUUID(g.Tx); ok && g.Origin == ledger.OriginOrphan {
			list = append(list, uuid+":"+listed(seen[uuid]))
		}
	}
	if list != nil {
		c.True, c.Reason = true, "NoGrant"
		c.Message = "not handed out while these run without a grant: " + strings.Join(list, "; ")
	}
	return c, list != nil || a.config.Orphans.Enabled && len(seen) > 0
}

// mostListed bounds the processes that are named of one device.
const mostListed = 8

// listed is " PID NAME, PID NAME, and 3 more".
func listed(list []process) string {
	var text strings.Builder
	for i, p := range list {
		if i == mostListed {
			fmt.Fprintf(&text, ", and %d more", len(list)-i)
			break
		}
		if i > 0 {
			text.WriteByte(',')
		}
		name := p.name
		if name == "" {
			name = "(unknown)"
		}
		fmt.Fprintf(&text, " %d %s", p.pid, name)
	}
	if len(list) == 0 {
		return " not seen since the start of the agent"
	}
	return text.String()
}
