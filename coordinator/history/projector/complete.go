package projector

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// This file is about facts of a grant without a record: the request of deleted work, and the
// models of a node's earlier devices.

// complete takes these facts of the members over from the history: a comparison finds no
// difference in them, and a rebuild keeps them.
func complete(want, has []history.Grant, isPartial func(resource.TxID) bool) {
	at := map[resource.TxID]history.Grant{}
	for _, g := range has {
		at[g.Tx] = g
	}
	for i := range want {
		of := at[want[i].Tx].Members
		for j := range want[i].Members {
			m := &want[i].Members[j]
			k := slices.IndexFunc(of, func(x history.Member) bool { return x.Index == m.Index })
			if k < 0 || of[k].Node != m.Node || !slices.Equal(of[k].Devices, m.Devices) {
				continue
			}
			completeModel(m, of[k])
			if isPartial(want[i].Tx) {
				completeRequest(m, of[k])
			}
		}
	}
}

// forget leaves slices out of the history which the store cannot confirm or deny: of possible
// slots of a member without a known request, or without a known model.
func forget(want []history.Grant, list []history.Slice, isPartial func(resource.TxID) bool) []history.Slice {
	type member struct {
		tx    resource.TxID
		index int
	}
	doubtful := map[member]history.Member{}
	for _, g := range want {
		for _, m := range g.Members {
			if isPartial(g.Tx) || m.GPUModel == "" && m.Allocated[resource.GPU] > 0 {
				doubtful[member{g.Tx, m.Index}] = m
			}
		}
	}
	return slices.DeleteFunc(list, func(s history.Slice) bool {
		m, doubt := doubtful[member{s.Tx, s.Member}]
		_, known := m.Allocated[s.Slot]
		return doubt && !known && (isPartial(s.Tx) || resource.IsGPUModel(s.Slot))
	})
}

// completeModel: a node may be gone, or may have other devices than at the commit.
func completeModel(m *history.Member, has history.Member) {
	if has.GPUModel == "" || has.GPUModel == m.GPUModel {
		return
	}
	m.GPUModel = has.GPUModel
	m.Requested, m.Allocated = withModels(m.Requested, has.Requested), withModels(m.Allocated, has.Allocated)
}

// withModels are amounts with the devices by model of other amounts.
func withModels(v, of resource.Vector) resource.Vector {
	isModel := func(name resource.Name, _ int64) bool { return resource.IsGPUModel(name) }
	all := v.Clone()
	maps.DeleteFunc(all, isModel)
	for name, amount := range of {
		if isModel(name, amount) {
			all[name] = amount
		}
	}
	return all
}

// completeRequest: the work may be deleted.
func completeRequest(m *history.Member, has history.Member) {
	m.Requested, m.Limits = has.Requested, has.Limits
	for name, amount := range has.Allocated {
		if _, known := m.Allocated[name]; !known {
			m.Allocated[name] = amount
		}
	}
}
