package service

import (
	"cmp"

	"github.com/musterd/muster/api"
)

// WrittenQueues is the kind Queue. A queue that nobody has written is there while live
// work names it, and has no resourceVersion; the first update of it creates its record.
var WrittenQueues = WrittenKind[api.Queue]{
	Kind: KindQueues, Document: api.KindQueue,
	Listed: Listed[api.Queue]{
		Meta: func(q *api.Queue) *api.ObjectMeta { return &q.Metadata },
		Fields: map[string]func(*api.Queue) string{
			"metadata.name": func(q *api.Queue) string { return q.Metadata.Name },
			"spec.state":    func(q *api.Queue) string { return q.Spec.State },
			"spec.order":    func(q *api.Queue) string { return q.Spec.Order },
		},
	},
	decode: api.DecodeQueue,
	typed: func(q *api.Queue) {
		q.APIVersion, q.Kind = cmp.Or(q.APIVersion, api.APIVersion), cmp.Or(q.Kind, api.KindQueue)
	},
	bare: func(q *api.Queue) { q.Status = api.QueueStatus{} },
	of:   Written.Queues,
}
