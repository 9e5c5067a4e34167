package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the devices that the kubelet of this host hands out. Each of them
// is a Held grant of OriginKubelet that has the whole device: a pool grant while
// no container has the device, a lent grant while a container may have it. The
// leader knows that the device is taken, and plans nothing on it.

const (
	// poolPrefix begins the identifiers of pool grants, lentPrefix those of lent
	// grants. No attempt of a leader has a colon in its own.
	poolPrefix = "pool:"
	lentPrefix = "kubelet:"
)

// PoolTx is the identifier of the pool grant of a GPU or MIG instance.
func PoolTx(uuid string) resource.TxID { return resource.TxID(poolPrefix + uuid) }

// LentTx is the identifier of the lent grant of a GPU or MIG instance.
func LentTx(uuid string) resource.TxID { return resource.TxID(lentPrefix + uuid) }

// PooledUUID is the device of a grant of OriginKubelet, and whether a container may
// have the device. ok is false for every other identifier.
func PooledUUID(tx resource.TxID) (uuid string, lent, ok bool) {
	if uuid, ok = strings.CutPrefix(string(tx), poolPrefix); ok {
		return uuid, false, true
	}
	uuid, ok = strings.CutPrefix(string(tx), lentPrefix)
	return uuid, ok, ok
}

// setKubeletPool takes over the operators' part of the pool. The devices follow with
// the next Pool.
func (d *decision) setKubeletPool(c grant.KubeletPool) {
	if err := c.Check(); err != nil {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: err.Error()})
	} else if !c.Equal(d.l.wish) {
		d.emit(KubeletPoolSet(c.Clone()))
	}
}

// KubeletPool is the operators' part of the kubelet's pool.
func (l *Ledger) KubeletPool() grant.KubeletPool { return l.wish.Clone() }

// pool takes the listed devices that are wholly free into the pool, and gives back
// the devices of the pool that are not listed. A lent device stays lent.
func (d *decision) pool(c Pool) {
	if d.l.registered == 0 {
		return
	}
	listed := sortedOnce(c.Devices)
	for _, tx := range d.l.sorted(func(g *entry) bool { return g.Origin == OriginKubelet }) {
		uuid, lent, _ := PooledUUID(tx)
		if _, is := slices.BinarySearch(listed, uuid); !is && !lent {
			d.end(d.l.grants[tx], Dropped{tx, 0})
		}
	}
	for _, uuid := range listed {
		tx := PoolTx(uuid)
		if all, free := d.l.whole(uuid); free && len(LentTx(uuid)) <= MaxText {
			d.emit(d.kubelet(tx, []Holding{{Assignment: all}}))
		}
	}
}

// kubelet is the event that adds a grant of OriginKubelet.
func (d *decision) kubelet(tx resource.TxID, members []Holding) Granted {
	return Granted{Grant{Tx: tx, Epoch: d.l.epoch, Origin: OriginKubelet, State: grant.Held, Since: d.now, Members: members}}
}

// lend marks devices of the pool as lent, all or none. A device that is lent already
// stays so: the kubelet reuses devices, and learns of ends before the agent.
func (d *decision) lend(c Lend) {
	list := sortedOnce(c.Devices)
	for _, uuid := range list {
		if d.l.grants[PoolTx(uuid)] == nil && d.l.grants[LentTx(uuid)] == nil {
			d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf("device %s: %s", uuid, d.l.notPooled(uuid))})
		}
	}
	if len(d.reply.Reasons) > 0 {
		return
	}
	for _, uuid := range list {
		if g := d.l.grants[PoolTx(uuid)]; g != nil {
			members := g.Members
			d.end(g, Dropped{g.Tx, 0})
			d.emit(d.kubelet(LentTx(uuid), members))
		}
	}
}

// notPooled is the reason why a device is not in the pool.
func (l *Ledger) notPooled(uuid string) string {
	for _, tx := range l.sorted(func(g *entry) bool { return g.State.Holds() }) {
		if g := l.grants[tx]; hasDevice(g.Members, uuid) {
			return fmt.Sprintf("not in the kubelet's pool, grant %s of origin %s has it", tx, g.Origin)
		}
	}
	return "not in the kubelet's pool"
}

// giveBack ends the lent grants of devices that no container has. A device on which
// a process runs stays lent, and is named in the reasons.
func (d *decision) giveBack(c Return) {
	for _, uuid := range sortedOnce(c.Devices) {
		g := d.l.grants[LentTx(uuid)]
		switch {
		case g == nil:
		case slices.Contains(c.Busy, uuid):
			d.refuse(resource.Reason{Code: resource.ReasonInsufficient, Detail: fmt.Sprintf("device %s: a process runs on it", uuid)})
		default:
			members := g.Members
			d.end(g, Dropped{g.Tx, 0})
			d.emit(d.kubelet(PoolTx(uuid), members)) // the next Pool gives it to the leader where it is not listed any more
		}
	}
}
