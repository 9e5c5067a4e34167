package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

const (
	// queryLimit bounds an answer that serf carries, in bytes.
	queryLimit   = 1024
	queryTimeout = time.Second
	// apiVersion is the newest version of Muster's API that agents speak.
	apiVersion = "v1"
)

// joinRings becomes a member of both rings.
func (a *Agent) joinRings() error {
	g := a.config.Gossip
	if g == nil {
		return nil
	}
	model := ""
	if d := a.Host().Inventory().Devices; len(d) > 0 {
		model = d[0].Model
	}
	rings, err := gossip.Start(gossip.Config{
		Keyring: a.keyring(), Advertise: a.config.Advertise,
		Cluster: a.config.Cluster, Cell: g.Cell, SerfBind: g.SerfBind, CapacityBind: g.CapacityBind,
		Join: g.Join, CapacityJoin: g.CapacityJoin, RPC: g.RPC, Profile: g.Profile, Transports: g.Transports, Logger: a.log,
		Tags: gossip.Tags{
			Role: gossip.RoleAgent, ID: string(a.config.Node), Addr: a.address, API: apiVersion, Model: model,
			Zone: a.config.Labels["zone"], Rack: a.config.Labels["rack"], Block: a.config.Labels["block"],
		},
		Queries: a.queries(a.countsAnswer), Local: a.queries(a.allocationsAnswer),
		OnMember: func(m gossip.Member) {
			if m.Tags.Role == gossip.RoleCoordinator && m.Status == gossip.Alive {
				wake(a.found)
				if !a.registered.Load() {
					wake(a.register)
				}
			}
		},
	})
	if err != nil {
		return fmt.Errorf("agent: join the rings: %w", err)
	}
	a.mu.Lock()
	a.rings = rings
	a.mu.Unlock()
	return a.metrics.addRings(rings)
}

// publisher spreads the digest whenever the ledger has changed, until ctx
// ends. The ring paces it.
func (a *Agent) publisher(ctx context.Context) {
	rings := a.Rings()
	if rings == nil {
		return
	}
	cell := a.config.Gossip.Cell
	if cell == "" {
		cell = gossip.DefaultCell
	}
	wake(a.dirty)
	for {
		select {
		case <-a.dirty:
		case <-ctx.Done():
			return
		}
		v, err := a.view(ctx, nil)
		if err != nil {
			return // only when the agent ends
		}
		if err := rings.Capacity.Publish(a.digestOf(v, cell, uint64(a.deps.Now().UnixNano()))); err != nil {
			a.log.Error("digest_not_published", "error", err)
		}
		// Changes made meanwhile go into the next digest: at most ten digests a
		// second.
		if !pause(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// queries answers operators in compact JSON of at most queryLimit bytes. Names
// of units are their tenants' matter: allocations is answered to the ring by
// countsAnswer, and to operators of this host by allocationsAnswer.
func (a *Agent) queries(allocations func(*ledger.View) []byte) map[string]gossip.QueryHandler {
	answer := func(of func(*ledger.View) []byte) gossip.QueryHandler {
		return func([]byte) []byte {
			ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
			defer cancel()
			v, err := a.view(ctx, nil)
			if err != nil {
				return list("error", []any{err.Error()})
			}
			return of(v)
		}
	}
	return map[string]gossip.QueryHandler{
		"version": func([]byte) []byte {
			return list("version", []any{map[string]string{"version": a.config.Version, "api": apiVersion}})
		},
		"capacity":    answer(a.capacityAnswer),
		"devices":     answer(a.devicesAnswer),
		"health":      answer(a.healthAnswer),
		"allocations": answer(allocations),
	}
}

func (a *Agent) capacityAnswer(v *ledger.View) []byte {
	total, free := allocatable(v), v.Host.FreeVector(v.Free)
	var rows []any
	for _, name := range total.Names() {
		rows = append(rows, map[string]string{
			"resource": string(name), "free": resource.FormatAmount(name, free[name]), "total": resource.FormatAmount(name, total[name]),
		})
	}
	return list("capacity", rows)
}

func (a *Agent) devicesAnswer(v *ledger.View) []byte {
	var rows []any
	for _, g := range v.GPUs {
		rows = append(rows, map[string]any{"i": g.Index, "uuid": g.UUID, "free": g.Milli})
	}
	return list("devices", rows)
}

func (a *Agent) healthAnswer(v *ledger.View) []byte {
	var rows []any
	for _, c := range a.conditions(v) {
		rows = append(rows, map[string]any{"type": c.Type, "status": c.True, "reason": c.Reason})
	}
	if q := v.Quarantine; !q.IsZero() {
		rows = append(rows, map[string]any{"quarantine": q.String(), "heard": q.Heard, "store": q.Store})
	}
	for _, d := range unhealthy(v) {
		rows = append(rows, map[string]any{"device": d.Index, "health": d.Health.String(), "reason": d.Reason})
	}
	return list("health", rows)
}

// countsAnswer is how many grants there are in each state.
func (a *Agent) countsAnswer(v *ledger.View) []byte {
	counts := map[string]int{}
	for _, g := range v.Grants {
		if g.State != grant.Tombstone {
			counts[shown(g)]++
		}
	}
	var rows []any
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, map[string]any{"state": state, "count": counts[state]})
	}
	return list("allocations", rows)
}

// allocationsAnswer has each grant; those of the kubelet with the device, and with the
// containers as NAMESPACE/POD/CONTAINER where there is room for all of them.
func (a *Agent) allocationsAnswer(v *ledger.View) []byte {
	containers := map[string][]string{}
	for _, u := range a.kubelet.Status().Users {
		containers[u.Device] = append(containers[u.Device], u.Namespace+"/"+u.Pod+"/"+u.Container)
	}
	if body, more := fitting("allocations", allocationRows(v, containers)); more == 0 {
		return body
	}
	return list("allocations", allocationRows(v, nil))
}

// allocationRows are the rows of grants; containers are those of the kubelet's devices, by
// UUID.
func allocationRows(v *ledger.View, containers map[string][]string) (rows []any) {
	for _, g := range v.Grants {
		if g.State == grant.Tombstone {
			continue
		}
		gpus := []int{}
		cpus := 0
		for _, m := range g.Members {
			cpus += len(m.Assignment.CPUs)
			for _, d := range m.Assignment.GPUs {
				gpus = append(gpus, d.Index)
			}
		}
		row := map[string]any{"unit": string(g.Unit), "state": shown(g), "cpus": cpus, "gpus": gpus}
		if uuid, _, pooled := ledger.PooledUUID(g.Tx); pooled {
			row["device"] = uuid
			if list := containers[uuid]; len(list) > 0 {
				row["containers"] = list
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// list is {"key":[rows…]}; rows that do not fit are counted in "more".
func list(key string, rows []any) []byte {
	body, _ := fitting(key, rows)
	return body
}

// fitting is list, and the number of rows that do not fit.
func fitting(key string, rows []any) (body []byte, more int) {
	body = []byte(`{"` + key + `":[`)
	const tail = len(`],"more":1000000}`)
	for i, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			panic(fmt.Sprintf("agent: answer %s, row %d: %v", key, i, err))
		}
		if len(body)+1+len(text)+tail > queryLimit {
			return fmt.Appendf(body, `],"more":%d}`, len(rows)-i), len(rows) - i
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	return append(body, "]}"...), 0
}
