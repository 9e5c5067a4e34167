package reference

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/musterd/muster/api"
)

// Role says how clients meet a kind of document.
type Role string

// The roles.
const (
	// Manifest documents are objects: clients send or get them.
	Manifest Role = "manifest"
	// Options are bodies of requests.
	Options Role = "options"
	// Answer documents come from the server alone.
	Answer Role = "answer"
)

// Kind is one kind of document.
type Kind struct {
	Field
	Role Role
	// Decode reads a document as the server does; nil for answers.
	Decode func(doc []byte) error
}

// entry is a row of the table of kinds.
type entry struct {
	of     reflect.Type
	role   Role
	decode func(doc []byte) error
}

// kind makes a row; the list of a kind needs none.
func kind[T any](role Role, decode func(doc []byte) error) entry {
	return entry{reflect.TypeFor[T](), role, decode}
}

// decoded adapts a decoder of package api, whose refusal is no plain error.
func decoded[T any](decode func([]byte) (T, *api.Status)) func([]byte) error {
	return func(doc []byte) error {
		if _, status := decode(doc); status != nil {
			return status
		}
		return nil
	}
}

// table has every kind in the order of the reference.
func table() []entry {
	return []entry{
		kind[api.Job](Manifest, decoded(api.DecodeJob)),
		kind[api.Allocation](Manifest, decoded(api.DecodeAllocation)),
		kind[api.Node](Manifest, nil),
		kind[api.ResourceQuota](Manifest, decoded(api.DecodeResourceQuota)),
		kind[api.QuotaTree](Manifest, decodeTree),
		kind[api.QuotaForest](Manifest, decoded(api.DecodeQuotaForest)),
		kind[api.QuotaBinding](Manifest, decoded(api.DecodeQuotaBinding)),
		kind[api.Tenant](Manifest, decoded(api.DecodeTenant)),
		kind[api.Resource](Manifest, decoded(api.DecodeResource)),
		kind[api.PriorityClass](Manifest, decoded(api.DecodePriorityClass)),
		kind[api.Queue](Manifest, decoded(api.DecodeQueue)),
		kind[api.Namespace](Manifest, decoded(api.DecodeNamespace)),
		kind[api.RoleBinding](Manifest, decoded(api.DecodeRoleBinding)),
		kind[api.AccessToken](Manifest, timed(api.DecodeAccessToken)),
		kind[api.Event](Manifest, nil),
		kind[api.Consumer](Manifest, decodeConsumer),
		kind[api.BootstrapToken](Manifest, timed(api.DecodeBootstrapToken)),
		kind[api.Authority](Manifest, nil),
		kind[api.OperatorCertificate](Manifest, timed(api.DecodeOperatorCertificate)),
		kind[api.NodeBan](Manifest, decoded(func(doc []byte) (string, *api.Status) { return api.DecodeNodeBan("", doc) })),

		kind[api.DeleteOptions](Options, decoded(api.DecodeDeleteOptions)),
		kind[api.BulkReleaseOptions](Options, decoded(api.DecodeBulkRelease)),
		kind[api.PreemptionRequest](Options, decoded(api.DecodePreemption)),
		kind[api.DrainOptions](Options, decoded(api.DecodeDrainOptions)),
		kind[api.FenceOptions](Options, decoded(api.DecodeFenceOptions)),
		kind[api.ApproveOptions](Options, decoded(api.DecodeApproveOptions)),
		kind[api.ReconcileOptions](Options, decoded(api.DecodeReconcileOptions)),
		kind[api.QuotaRename](Options, decoded(api.DecodeQuotaRename)),
		kind[api.BoostOptions](Options, decoded(api.DecodeBoostOptions)),
		kind[api.RotateOptions](Options, decoded(api.DecodeRotateOptions)),
		kind[api.ReclaimOptions](Options, decoded(api.DecodeReclaimOptions)),
		kind[api.QuotaModePatch](Options, decoded(api.DecodeQuotaModePatch)),
		kind[api.FeatureLevelPatch](Options, decoded(api.DecodeFeatureLevelPatch)),

		kind[api.Status](Answer, nil),
		kind[api.Explanation](Answer, nil),
		kind[api.Preemption](Answer, nil),
		kind[api.Drain](Answer, nil),
		kind[api.Boost](Answer, nil),
		kind[api.EvictionNotice](Answer, nil),
		kind[api.LogChunk](Answer, nil),
		kind[api.Reconciliation](Answer, nil),
		kind[api.ClusterUtilization](Answer, nil),
		kind[api.QueueUsage](Answer, nil),
		kind[api.TenantUsage](Answer, nil),
		kind[api.QuotaExplanation](Answer, nil),
		kind[api.QuotaDryRun](Answer, nil),
		kind[api.BulkRelease](Answer, nil),
		kind[api.QuotaReclaim](Answer, nil),
		kind[api.QuotaMode](Answer, nil),
		kind[api.FeatureLevel](Answer, nil),
		kind[api.WhoAmI](Answer, nil),
		kind[api.LoginMethod](Answer, nil),
		kind[api.Coordinator](Answer, nil),
		kind[api.AuditEntry](Answer, nil),
		kind[api.HistoryStatus](Answer, nil), kind[api.HistoryReport](Answer, nil), kind[api.HistoryRetention](Answer, nil),
		kind[api.ClusterSnapshot](Answer, nil),
		kind[api.PastAllocation](Answer, nil),
		kind[api.PastPreemption](Answer, nil),
		kind[api.PastEvent](Answer, nil),
		kind[api.Version](Answer, nil),
	}
}

// writtenElsewhere are the fields that another package than api decodes.
var writtenElsewhere = written{"QuotaTree.Spec": reflect.TypeFor[api.QuotaTreeSpec]()}

//go:embed texts.json
var textsFile []byte

// Kinds returns every kind in the order of the reference. The result is shared and
// must not be changed.
var Kinds = sync.OnceValue(func() []Kind {
	var t texts
	if err := json.Unmarshal(textsFile, &t); err != nil {
		panic("reference: texts.json: " + err.Error()) // a file of this package, which a test reads
	}
	w := walker{texts: t, written: writtenElsewhere}
	rows := table()
	all := make([]Kind, len(rows))
	for i, row := range rows {
		all[i] = Kind{Field: w.document(row.of), Role: row.role, Decode: row.decode}
		if row.role == Answer {
			readOnly(all[i].Fields)
		}
	}
	return all
})

// readOnly marks the fields of an answer.
func readOnly(fields []Field) {
	for i := range fields {
		fields[i].ReadOnly = true
		readOnly(fields[i].Fields)
	}
}
