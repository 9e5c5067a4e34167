package api

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// fuzzAccepted is for documents whose values are not written again as they were read: a
// document is refused well, or its value holds.
func fuzzAccepted[T any](f *testing.F, decode func([]byte) (T, *Status), holds func(T) bool, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, status := decode(doc)
		if status != nil {
			refusedWell(t, status)
			if len(status.Causes) > MaxFaults {
				t.Fatalf("%q is refused with %d causes", doc, len(status.Causes))
			}
			return
		}
		if !holds(v) {
			t.Fatalf("%q is read as %+v", doc, v)
		}
	})
}

// again reads an options document, which is a value, as fuzzDocument wants it.
func again[T any](decode func([]byte) (T, *Status)) func([]byte) (*T, *Status) {
	return func(doc []byte) (*T, *Status) {
		v, status := decode(doc)
		return &v, status
	}
}

func FuzzDecodeNodeCreate(f *testing.F) {
	fuzzAccepted(f, DecodeNodeCreate, func(n *Node) bool { return IsSubdomain(n.Metadata.Name) },
		`{"metadata":{"name":"gpu-1","labels":{"zone":"a"}},"spec":{"capacity":{"cpu":"64","nvidia.com/gpu":8},"allocatable":{"cpu":"60"},"taints":[{"key":"a","effect":"NoSchedule"}]}}`)
}

func FuzzDecodeNode(f *testing.F) {
	fuzzAccepted(f, DecodeNode, func(n *Node) bool { return IsSubdomain(n.Metadata.Name) },
		`{"kind":"Node","metadata":{"name":"gpu-1"},"spec":{"unschedulable":true,"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`)
}

func FuzzDecodeNodeStatusPatch(f *testing.F) {
	decode := func(doc []byte) (NodeStatusPatch, *Status) { return DecodeNodeStatusPatch("gpu-1", doc) }
	holds := func(p NodeStatusPatch) bool { // a patch that is sent on means the same
		sent, err := json.Marshal(p)
		if err != nil {
			return false
		}
		again, status := decode(sent)
		return status == nil && slices.Equal(p.Names(), again.Names())
	}
	fuzzAccepted(f, decode, holds,
		`{"status":{"allocatable":{"cpu":"60","nvidia.com/gpu":null}}}`, `{"metadata":{"resourceVersion":"7"},"status":{"allocatable":null}}`)
}

func FuzzDecodeNodeStrategicPatch(f *testing.F) {
	decode := func(doc []byte) (NodePatch, *Status) { return DecodeNodeStrategicPatch("gpu-1", doc) }
	fuzzAccepted(f, decode, func(NodePatch) bool { return true },
		`{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"NoSchedule","$patch":"delete"}],"unschedulable":null}}`)
}

func FuzzDecodeFeatureLevelPatch(f *testing.F) {
	fuzzAccepted(f, DecodeFeatureLevelPatch, func(p FeatureLevelPatch) bool { return p.Level >= 1 }, `{"kind":"FeatureLevel","level":2}`, `{"level":0}`)
}

func FuzzDecodeWorkPatch(f *testing.F) {
	decode := func(doc []byte) (WorkPatch, *Status) { return DecodeWorkPatch(KindJob, "ml", "train", doc) }
	fuzzAccepted(f, decode, func(p WorkPatch) bool { return !p.IsZero() && (p.Spec == nil || json.Valid(p.Spec)) },
		`{"metadata":{"labels":{"a":null},"resourceVersion":"7"},"spec":{"suspend":true,"queue":"night","parallelism":4}}`)
}

func FuzzDecodeAccessToken(f *testing.F) {
	decode := func(doc []byte) (*AccessToken, *Status) {
		t, ttl, status := DecodeAccessToken(doc)
		if status == nil && (ttl < 0 || ttl > MaxTokenTTL) {
			return nil, nil
		}
		return t, status
	}
	fuzzAccepted(f, decode, func(t *AccessToken) bool { return t != nil && t.Spec.Validate() == nil && t.Metadata.Name == "" },
		`{"spec":{"user":"ada","role":"editor","tenant":"vision","namespaces":["dev"],"priorityCeiling":10,"ttl":"720h"}}`)
}

func FuzzDecodeRotateOptions(f *testing.F) {
	fuzzAccepted(f, DecodeRotateOptions, func(d time.Duration) bool { return d >= 0 && d <= MaxOverlap }, "", `{"overlap":"1h"}`, `{"overlap":"-0s"}`)
}

func FuzzDecodeRoleBinding(f *testing.F) {
	fuzzAccepted(f, DecodeRoleBinding, func(b *RoleBinding) bool { return b.Validate() == nil },
		`{"kind":"RoleBinding","metadata":{"name":"vision.editors"},"spec":{"role":"editor","tenant":"vision","subjects":[{"kind":"User","name":"ada"},{"kind":"Token","name":"at-5d1f09c2ab"}]}}`)
}

func FuzzDecodeDeleteOptions(f *testing.F) {
	fuzzDocument(f, again(DecodeDeleteOptions), "", `{"gracePeriodSeconds":0,"propagationPolicy":"Background","preconditions":{"uid":"u","resourceVersion":"7"},"reason":"r"}`)
}

func FuzzDecodeBoostOptions(f *testing.F) {
	fuzzDocument(f, again(DecodeBoostOptions), `{"newPriority":500,"duration":"3600s","reason":"r","approvedBy":"a"}`)
}

func FuzzDecodeQuotaRename(f *testing.F) {
	fuzzDocument(f, again(DecodeQuotaRename), `{"from":"nlp","to":"language"}`)
}

func FuzzDecodeBulkRelease(f *testing.F) {
	fuzzDocument(f, again(DecodeBulkRelease), `{"labelSelector":"a in (b,c),!d","gracePeriodSeconds":30,"dryRun":true}`)
}

func FuzzDecodePriorityClass(f *testing.F) {
	fuzzAccepted(f, DecodePriorityClass, func(c *PriorityClass) bool { return c.Validate() == nil }, `{"kind":"PriorityClass","metadata":{"name":"release"},"spec":{"value":500,"preemptionPolicy":"Never","globalDefault":true,"description":"x"}}`)
}

func FuzzDecodeQueue(f *testing.F) {
	fuzzAccepted(f, DecodeQueue, func(q *Queue) bool { return q.Validate() == nil }, `{"kind":"Queue","metadata":{"name":"train"},"spec":{"state":"Hold","order":"Strict","maxRunningMembers":64}}`)
}

func FuzzDecodeResource(f *testing.F) {
	fuzzAccepted(f, DecodeResource, func(r *Resource) bool { return r.Validate() == nil }, `{"kind":"Resource","metadata":{"name":"example.com/fpga"},"spec":{"unit":"boards"}}`)
}
