package limits

import "github.com/musterd/muster/api"

// The documents of muster.v1.Quotas are judged by package api, which bounds
// them more narrowly and with better messages: these limits keep them small
// until then.
var (
	objectName = document(4096)
	objects    = listOf(1<<16, message)
	nameList   = listOf(1<<16, objectName)
	amounts    = dictOf(4096, objectName, document(256))
	annotated  = dictOf(1024, document(1024), document(256<<10))
)

var quotaFields = map[string]Limit{
	"muster.v1.QuotaKey.namespace": objectName,
	"muster.v1.QuotaKey.name":      objectName,

	"muster.v1.ObjectMeta.name":               objectName,
	"muster.v1.ObjectMeta.namespace":          objectName,
	"muster.v1.ObjectMeta.uid":                objectName,
	"muster.v1.ObjectMeta.resource_version":   objectName,
	"muster.v1.ObjectMeta.creation_timestamp": objectName,
	"muster.v1.ObjectMeta.labels":             annotated,
	"muster.v1.ObjectMeta.annotations":        annotated,

	"muster.v1.Condition.type":                 objectName,
	"muster.v1.Condition.status":               objectName,
	"muster.v1.Condition.reason":               objectName,
	"muster.v1.Condition.message":              document(64 << 10),
	"muster.v1.Condition.last_transition_time": objectName,

	"muster.v1.ResourceQuota.metadata":       message,
	"muster.v1.ResourceQuota.hard":           amounts,
	"muster.v1.ResourceQuota.soft":           amounts,
	"muster.v1.ResourceQuota.scopes":         listOf(64, objectName),
	"muster.v1.ResourceQuota.scope_selector": listOf(64, message),
	"muster.v1.ResourceQuota.status":         message,

	"muster.v1.ScopeExpression.scope_name": objectName,
	"muster.v1.ScopeExpression.operator":   objectName,
	"muster.v1.ScopeExpression.values":     listOf(4096, objectName),

	"muster.v1.ResourceQuotaStatus.hard":        amounts,
	"muster.v1.ResourceQuotaStatus.used":        amounts,
	"muster.v1.ResourceQuotaStatus.utilization": amounts,
	"muster.v1.ResourceQuotaStatus.trend":       amounts,
	"muster.v1.ResourceQuotaStatus.conditions":  listOf(64, message),

	"muster.v1.ListResourceQuotasRequest.namespace":         objectName,
	"muster.v1.ListResourceQuotasResponse.resource_version": objectName,
	"muster.v1.ListResourceQuotasResponse.items":            objects,

	"muster.v1.QuotaTree.metadata": message,
	"muster.v1.QuotaTree.spec":     blob(api.MaxDocument),
	"muster.v1.QuotaTree.status":   message,

	"muster.v1.QuotaTreeStatus.root":        objectName,
	"muster.v1.QuotaTreeStatus.dangling":    nameList,
	"muster.v1.QuotaTreeStatus.other_roots": nameList,
	"muster.v1.QuotaTreeStatus.orphans":     nameList,
	"muster.v1.QuotaTreeStatus.cyclic":      nameList,
	"muster.v1.QuotaTreeStatus.detached":    nameList,
	"muster.v1.QuotaTreeStatus.nodes":       objects,

	"muster.v1.QuotaNode.name":       objectName,
	"muster.v1.QuotaNode.parent":     objectName,
	"muster.v1.QuotaNode.depth":      between(0, 1<<20),
	"muster.v1.QuotaNode.hard":       boolean,
	"muster.v1.QuotaNode.leaf":       boolean,
	"muster.v1.QuotaNode.quota":      amounts,
	"muster.v1.QuotaNode.allocated":  amounts,
	"muster.v1.QuotaNode.own":        amounts,
	"muster.v1.QuotaNode.borrowed":   amounts,
	"muster.v1.QuotaNode.lent":       amounts,
	"muster.v1.QuotaNode.over_quota": nameList,
	"muster.v1.QuotaNode.consumers":  nameList,

	"muster.v1.PutQuotaTreeRequest.tree":        message,
	"muster.v1.PutQuotaTreeRequest.create_only": boolean,

	"muster.v1.ListQuotaTreesResponse.resource_version": objectName,
	"muster.v1.ListQuotaTreesResponse.items":            objects,

	"muster.v1.QuotaForest.metadata": message,
	"muster.v1.QuotaForest.trees":    listOf(4096, objectName),

	"muster.v1.PutQuotaForestRequest.forest":      message,
	"muster.v1.PutQuotaForestRequest.create_only": boolean,

	"muster.v1.ListQuotaForestsResponse.resource_version": objectName,
	"muster.v1.ListQuotaForestsResponse.items":            objects,

	"muster.v1.QuotaBinding.metadata":  message,
	"muster.v1.QuotaBinding.forest":    objectName,
	"muster.v1.QuotaBinding.groups":    dictOf(4096, objectName, objectName),
	"muster.v1.QuotaBinding.admission": objectName,

	"muster.v1.PutQuotaBindingRequest.binding":     message,
	"muster.v1.PutQuotaBindingRequest.create_only": boolean,

	"muster.v1.ListQuotaBindingsResponse.resource_version": objectName,
	"muster.v1.ListQuotaBindingsResponse.items":            objects,

	"muster.v1.QuotaPlacement.tree":           objectName,
	"muster.v1.QuotaPlacement.group":          objectName,
	"muster.v1.QuotaPlacement.request":        amounts,
	"muster.v1.QuotaPlacement.priority":       anyInt,
	"muster.v1.QuotaPlacement.unpreemptable":  boolean,
	"muster.v1.QuotaPlacement.node":           objectName,
	"muster.v1.QuotaPlacement.borrows_from":   nameList,
	"muster.v1.QuotaPlacement.reclaimable_by": nameList,

	"muster.v1.QuotaExplanation.consumer":   objectName,
	"muster.v1.QuotaExplanation.phase":      objectName,
	"muster.v1.QuotaExplanation.placements": listOf(4096, message),
	"muster.v1.QuotaExplanation.reasons":    listOf(4096, message),
	"muster.v1.QuotaExplanation.summary":    document(64 << 10),

	"muster.v1.TryQuotaRequest.consumer": blob(api.MaxDocument),

	"muster.v1.QuotaDryRun.admitted":   boolean,
	"muster.v1.QuotaDryRun.placements": listOf(4096, message),
	"muster.v1.QuotaDryRun.victims":    nameList,
	"muster.v1.QuotaDryRun.moved":      nameList,
	"muster.v1.QuotaDryRun.reasons":    listOf(4096, message),
	"muster.v1.QuotaDryRun.summary":    document(64 << 10),

	"muster.v1.ReclaimQuotaRequest.tree":                 objectName,
	"muster.v1.ReclaimQuotaRequest.dry_run":              boolean,
	"muster.v1.ReclaimQuotaRequest.grace_period_seconds": anyInt,

	"muster.v1.QuotaReclaim.tree":      objectName,
	"muster.v1.QuotaReclaim.dry_run":   boolean,
	"muster.v1.QuotaReclaim.units":     objects,
	"muster.v1.QuotaReclaim.nodes":     objects,
	"muster.v1.QuotaReclaim.remaining": objects,
	"muster.v1.QuotaReclaim.summary":   document(64 << 10),

	"muster.v1.QuotaReclaimed.kind":     objectName,
	"muster.v1.QuotaReclaimed.consumer": objectName,
	"muster.v1.QuotaReclaimed.node":     objectName,
	"muster.v1.QuotaReclaimed.request":  amounts,
	"muster.v1.QuotaReclaimed.priority": anyInt,

	"muster.v1.QuotaOverdraft.node": objectName,
	"muster.v1.QuotaOverdraft.over": amounts,

	"muster.v1.Refusal.code":    between(0, 999),
	"muster.v1.Refusal.reason":  objectName,
	"muster.v1.Refusal.details": listOf(4096, message),
}
