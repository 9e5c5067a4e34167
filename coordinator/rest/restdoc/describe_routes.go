package restdoc

import (
	"maps"
	"net/http"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
)

// descriptions are those of all routes, by pattern.
func descriptions() map[string]description {
	all := map[string]description{
		"GET /healthz": {text: "Answers ok while the program serves.", code: 200, example: "/healthz"},
		"GET /readyz": {
			text: "Answers whether this coordinator can serve, with its role, its term and its revision.", answer: "Coordinator", code: 200, example: "/readyz",
			refusals: map[int]string{http.StatusServiceUnavailable: "the program cannot serve yet; the message says why"},
		},
		"GET /version":      {text: "Names the version of the program and of the API.", answer: "Version", code: 200, example: "/version"},
		"GET /openapi.json": {text: "Describes the API as an OpenAPI 3.1 document in JSON.", code: 200, example: "/openapi.json"},
		"GET /openapi.yaml": {text: "Describes the API as an OpenAPI 3.1 document in YAML.", code: 200, example: "/openapi.yaml"},
		"GET /docs":         {text: "Shows the routes and the kinds of the API as a page for browsers.", code: 200, example: "/docs"},
		"GET /api/v1/coordinators": {
			text: "Lists the coordinators, the leader first. Each is asked for its state and has 1 s to answer.", answer: "CoordinatorList", code: 200, example: "/api/v1/coordinators",
		},
	}
	for _, some := range []map[string]description{workRoutes(), nodeRoutes(), usageRoutes(), quotaRoutes(), spaceRoutes(), resourceRoutes(), writtenRoutes(), eventRoutes(), identityRoutes(), credentialRoutes(), callerRoutes()} {
		maps.Copy(all, some)
	}
	return all
}

const (
	taken   = "the name is taken, or the Idempotency-Key was used for another document"
	noRoom  = "the namespace has as many allocations stored as it may have (reason TooManyObjects), or there is no room for the request now"
	spec    = `{"spec": {"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}}`
	oneUnit = `"spec": {"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}`
)

// workRoutes describes the routes of allocations and jobs.
func workRoutes() map[string]description {
	const in, allocations, jobs = "/api/v1/namespaces/{namespace}/", "/api/v1/namespaces/default/allocations", "/api/v1/namespaces/default/jobs"
	return map[string]description{
		"POST " + in + "allocations": {
			text: "Submits an allocation. With wait the answer comes once the allocation runs or has ended, or the time is over.",
			body: "Allocation", answer: "Allocation", code: 201, waits: true, extra: []string{"dryRun"},
			refusals: map[int]string{409: taken, 403: "the allocation is over quota and its namespace rejects such allocations", 429: noRoom},
			example:  allocations + "?wait=1s " + `{"metadata": {"name": "trial"}, ` + oneUnit + `}`,
		},
		"GET " + in + "allocations":        {text: "Lists the allocations of a namespace, a page at a time, by name.", answer: "AllocationList", code: 200, isList: true, example: allocations + "?fieldSelector=status.phase=Running"},
		"GET /api/v1/allocations":          {text: "Lists the allocations of all namespaces, a page at a time, by namespace and name.", answer: "AllocationList", code: 200, isList: true, example: "/api/v1/allocations?limit=100"},
		"GET " + in + "allocations/{name}": {text: "Shows an allocation. With wait the answer comes once the allocation runs or has ended, or the time is over.", answer: "Allocation", code: 200, waits: true, gets: true, example: allocations + "/web"},
		"PATCH " + in + "allocations/{name}": {
			text: "Changes an allocation by a merge patch (RFC 7386) of Content-Type application/merge-patch+json: labels, annotations, spec.suspend, and spec.queue while the allocation waits. A null removes a key. application/strategic-merge-patch+json is the same.", body: "Allocation", answer: "Allocation", code: 200,
			refusals: map[int]string{409: "the allocation has another resourceVersion than the patch, is ending, is a member of a job, or runs and cannot change its queue"}, example: allocations + `/web {"metadata": {"labels": {"team": "vision"}}}`,
		},
		"DELETE " + in + "allocations/{name}": {
			text: "Ends an allocation, with notice and grace, and removes the object once the devices are free. With propagationPolicy Background gets and lists show the object no more; its name is free once it has stopped.", extra: rest.DeleteParameters, body: "DeleteOptions", optional: true, answer: "Allocation", code: 200,
			refusals: map[int]string{409: "the allocation is a member of a job; cancel or delete the job; or the preconditions do not hold"}, example: allocations + `/web {"gracePeriodSeconds": 60}`,
		},
		"POST " + in + "allocations/bulk-release": {
			text: "Ends the allocations that a label selector selects, with notice and grace, and answers once every end is durable. The selector is not empty. Members of jobs fail: cancel or delete their jobs. With dryRun nothing ends.",
			body: "BulkReleaseOptions", answer: "BulkRelease", code: 200, example: allocations + `/bulk-release {"labelSelector": "team=vision", "dryRun": true}`,
		},
		"DELETE " + in + "allocations": {
			text: "Ends the allocations that labelSelector selects, as bulk-release does. The selector is not empty.", body: "DeleteOptions", optional: true, answer: "BulkRelease", code: 200,
			extra: rest.ReleaseParameters, example: allocations + "?labelSelector=team%3Dvision&dryRun=true",
		},
		"GET " + in + "allocations/{name}/explain": {text: "Says why an allocation does not run, whether it can, and what would help.", answer: "Explanation", code: 200, extra: []string{"nodes"}, example: allocations + "/web/explain?nodes=all"},
		"GET " + in + "allocations/{name}/quota":   {text: "Shows the places of an allocation on its quota trees, or the quota that is short.", answer: "QuotaExplanation", code: 200, example: allocations + "/web/quota"},

		"POST " + in + "jobs": {
			text: "Submits a job. With wait the answer comes once the job's first unit runs or has ended, or the time is over.",
			body: "Job", answer: "Job", code: 201, waits: true, extra: []string{"dryRun"}, refusals: map[int]string{409: taken, 429: noRoom},
			example: jobs + ` {"metadata": {"name": "sweep"}, "spec": {"parallelism": 2, "template": ` + spec + `}}`,
		},
		"GET " + in + "jobs":               {text: "Lists the jobs of a namespace, a page at a time, by name.", answer: "JobList", code: 200, isList: true, example: jobs + "?labelSelector=team%3Dvision"},
		"GET /api/v1/jobs":                 {text: "Lists the jobs of all namespaces, a page at a time, by namespace and name.", answer: "JobList", code: 200, isList: true, example: "/api/v1/jobs"},
		"GET " + in + "jobs/{name}":        {text: "Shows a job. With wait the answer comes once the first unit runs or has ended, or the time is over.", answer: "Job", code: 200, waits: true, gets: true, example: jobs + "/train?wait=1s"},
		"GET " + in + "jobs/{name}/status": {text: "Shows the state of a job: the answer has the status of a Job alone. With wait the answer comes once the first unit runs or has ended, or the time is over.", answer: "Job", code: 200, waits: true, gets: true, example: jobs + "/train/status"},
		"POST " + in + "jobs/{name}/cancel": {
			text: "Ends a job, with notice and grace, and keeps the object. The answer has the status of the Job alone.", extra: rest.CancelParameters, body: "DeleteOptions", optional: true, answer: "Job", code: 200,
			refusals: map[int]string{409: "the preconditions do not hold"},
			example:  jobs + `/train/cancel {"reason": "wrong data set"}`,
		},
		"POST " + in + "jobs/{name}/boost": {
			text: "Gives the members of a job that wait a greater priority for a while. A member that starts keeps it until it is back in the queue; those that still wait at the end have the job's own priority again. A later boost replaces the one before.", body: "BoostOptions", answer: "Boost", code: 200,
			refusals: map[int]string{403: "newPriority is above a ceiling of the caller or the namespace", 409: "the job is ending, or no member of it waits"},
			example:  jobs + `/train/boost {"newPriority": 500, "duration": "3600s", "reason": "production incident"}`,
		},
		"PATCH " + in + "jobs/{name}": {
			text: "Changes a job by a merge patch (RFC 7386) of Content-Type application/merge-patch+json: labels, annotations, spec.suspend, spec.parallelism, and spec.queue while all units wait. A null removes a key. application/strategic-merge-patch+json is the same.", body: "Job", answer: "Job", code: 200,
			refusals: map[int]string{409: "the job has another resourceVersion than the patch, is ending, runs and cannot change its queue, or a member's name is taken", 429: noRoom}, example: jobs + `/train {"metadata": {"annotations": {"note": "third run"}}, "spec": {"suspend": true}}`,
		},
		"DELETE " + in + "jobs/{name}": {
			text: "Ends a job, with notice and grace, and removes the object once the devices are free. propagationPolicy is as for an allocation.", extra: rest.DeleteParameters, body: "DeleteOptions", optional: true, answer: "Job", code: 200,
			refusals: map[int]string{409: "the preconditions do not hold"}, example: jobs + "/train",
		},
		"GET " + in + "jobs/{name}/explain": {text: "Says why a job's next unit does not run, whether it can, and what would help.", answer: "Explanation", code: 200, extra: []string{"nodes"}, example: jobs + "/train/explain"},
		"GET " + in + "jobs/{name}/logs": {
			text:   "Sends the output of the commands of a job's members, or of one member: one JSON document a line, of type OUTPUT with a piece, BOOKMARK after 10 s without output, END behind all output, or ERROR with the refusal that ends the answer. With follow the output ends with the job. Each request has an entry in the audit.",
			answer: "LogChunk", code: 200, extra: service.LogParameters, refusals: map[int]string{422: "the job has no command, or no member of that index", 429: "too many members' output is being read"},
			example: jobs + "/train/logs?follow=true&member=0",
		},
		"GET " + in + "jobs/{name}/exec": {
			text:  "Opens a session in a member of a job that runs: with a further command, or with attach=true with the member's own command, over a WebSocket (RFC 6455) of the subprotocol v1.exec.muster.dev, HTTP/1.1 alone. command is given once for each argument. With attach there is no command, tty or term; from is the offset in the output at which the session begins, by default the present end; input needs stdin of the job's template. Each message is binary and begins with a byte for its channel. From the client: 0 standard input, at most 32,768 bytes; 255, with the byte 0 behind it, the end of the input; 4 the size of the terminal, {\"rows\": 24, \"columns\": 80}; 5 the number of a signal, in decimal. To the client: 1 standard output; 2 standard error; 6 the bytes of input that the command has taken since the last such message, in decimal, of which 65,536 may be under way; 3 the end, which is the last message: {\"kind\": \"ExecExit\", \"code\": 0, \"reason\": \"Completed\"}, or a Status where the session is lost. A further command ends with its session, and the own command goes on. Each session has an entry in the audit.",
			extra: service.ExecParameters, code: 101,
			refusals: map[int]string{409: "the member does not run, or another session has its input", 422: "the job has no command, no member of that index, the member takes no input, or the command is none", 426: "the request is no WebSocket", 429: "too many sessions"},
			example:  jobs + "/train/exec?command=nvidia-smi&command=-L&member=0",
		},
		"GET " + in + "jobs/{name}/quota": {text: "Shows the places of a job's units on their quota trees, or the quota that is short.", answer: "QuotaExplanation", code: 200, example: jobs + "/train/quota"},

		"POST " + in + "preemptions": {
			text: "Evicts an allocation and its whole unit, with notice and grace. The answer comes once the notice is durable.", body: "PreemptionRequest", answer: "Preemption", code: 201,
			refusals: map[int]string{409: "nothing of the unit runs"}, example: `/api/v1/namespaces/default/preemptions {"targetAllocation": "web", "reason": "maintenance"}`,
		},
	}
}

// nodeRoutes describes the routes of nodes, beside bans.
func nodeRoutes() map[string]description {
	const node = "/api/v1/nodes/{name}"
	const alive = "the node's agent is alive, or the node changed meanwhile; the message says which"
	return map[string]description{
		"GET /api/v1/nodes": {text: "Lists the nodes, a page at a time, by name.", answer: "NodeList", code: 200, isList: true, example: "/api/v1/nodes?fieldSelector=status.phase=Ready"},
		"GET " + node:       {text: "Shows a node, its devices and their free parts.", answer: "Node", code: 200, gets: true, example: "/api/v1/nodes/gpu-1"},
		"PATCH " + node: {
			text: "Changes labels, annotations, taints, unschedulable or spec.kubelet by a merge patch (RFC 7386) of Content-Type application/merge-patch+json. A null removes a key. With application/strategic-merge-patch+json taints are merged by key and effect; else the list is the whole list.",
			body: "Node", answer: "Node", code: 200, refusals: map[int]string{409: "the node has another resourceVersion than the patch"},
			example: `/api/v1/nodes/gpu-1 {"spec": {"unschedulable": true}}`,
		},
		"POST /api/v1/nodes": {
			text: "Creates a node, before its agent registers or after: the operators' settings, and in spec the capacity that the host is expected to have. An operator gets a bootstrap token of one use for the host; a host may create its own node with its bootstrap token as the bearer.",
			body: "Node", answer: "Node", code: 201, refusals: map[int]string{409: "the node was created before"},
			example: `/api/v1/nodes {"metadata": {"name": "gpu-9", "labels": {"rack": "r12"}}, "spec": {"capacity": {"nvidia.com/gpu": "8"}}}`,
		},
		"PATCH " + node + "/status": {
			text: "Lowers the allocatable part of a node by a merge patch: of 8 GPUs with an amount of 6, the two least useful free ones are withheld from new work; of CPUs and memory new work leaves as much free as the amount is below the amount that the agent has found. Running work stays. The amount that the agent has found, or null, ends that.",
			body: "Node", answer: "Node", code: 200, refusals: map[int]string{409: "the node has not registered yet, or has another resourceVersion than the patch"},
			example: `/api/v1/nodes/gpu-1/status {"status": {"allocatable": {"nvidia.com/gpu": "3"}}}`,
		},
		"DELETE " + node:            {text: "Forgets a node that has left for good. Of the options the preconditions alone have an effect.", body: "DeleteOptions", optional: true, answer: "Node", code: 200, refusals: map[int]string{409: alive + ", or work is left on it, or the preconditions do not hold"}, example: "/api/v1/nodes/gpu-1"},
		"POST " + node + "/approve": {text: "Approves the capacity that a node has registered last. The request may be repeated.", body: "ApproveOptions", optional: true, answer: "Node", code: 200, refusals: map[int]string{409: "the node has registered anew since the resourceVersion of the body"}, example: "/api/v1/nodes/gpu-1/approve"},
		"POST " + node + "/drain":   {text: "Cordons a node and gives notice to each unit that runs there. The request may be repeated, to see the progress and to give notice to units that have come since; an uncordon ends the drain.", body: "DrainOptions", optional: true, answer: "Drain", code: 200, example: `/api/v1/nodes/gpu-1/drain {"gracePeriodSeconds": 60}`},
		"GET " + node + "/evictions": {
			text: "Lists the notices of evictions on a node; with watch each notice as it is given, one JSON document a line, or as Server-Sent Events where the header Accept names text/event-stream.", answer: "EvictionNoticeList", code: 200,
			extra: []string{"watch", "resourceVersion"}, example: "/api/v1/nodes/gpu-1/evictions",
		},
		"POST " + node + "/fence": {text: "Fences a node, so that no transaction counts on its agent's promises. With confirmDead its units end as NodeLost.", body: "FenceOptions", optional: true, answer: "Node", code: 200, refusals: map[int]string{409: alive}, example: `/api/v1/nodes/gpu-1/fence {"force": true}`},
		"POST " + node + "/reconcile": {
			text: "Ends a node's quarantine after the store was restored from a backup, or shows the effect where the body has no mode.", body: "ReconcileOptions", optional: true, answer: "Reconciliation", code: 200,
			refusals: map[int]string{409: "the node is not connected, or another node is being reconciled"}, example: "/api/v1/nodes/gpu-1/reconcile",
		},
	}
}

// usageRoutes describes the routes of the cluster in numbers.
func usageRoutes() map[string]description {
	const metrics = "/api/v1/metrics/"
	return map[string]description{
		"GET " + metrics + "cluster/utilization": {text: "Shows the hardware of the cluster, its use, and the work of the leader, in numbers at most 1 s old.", answer: "ClusterUtilization", code: 200, example: metrics + "cluster/utilization"},
		"GET " + metrics + "queues":              {text: "Shows the queues with their depths and waits: all queues to an operator, to a tenant the queues in which its own work waits, and that work alone.", answer: "QueueUsage", code: 200, example: metrics + "queues"},
		"GET " + metrics + "tenants/{tenant}/usage": {
			text: "Shows the usage of a tenant, beside its quota. A tenant sees its own usage alone.", answer: "TenantUsage", code: 200, extra: []string{"period"},
			refusals: map[int]string{403: "the token is another tenant's"}, example: metrics + "tenants/default/usage?period=24h",
		},
	}
}

// quotaRoutes describes the routes by which quota is set and read.
func quotaRoutes() map[string]description {
	const in, trees = "/api/v1/namespaces/{namespace}/resourcequotas", "/api/v1/quotatrees"
	const tree = `{"kind": "QuotaTree", "metadata": {"name": "NAME"}, "spec": {"resourceNames": ["cpu"], "nodes": {"all": {"parent": "nil", "quota": {"cpu": "8"}}}}}`
	all := map[string]description{
		"GET " + in:                       {text: "Lists the resource quotas of a namespace.", answer: "ResourceQuotaList", code: 200, isList: true, example: "/api/v1/namespaces/default/resourcequotas"},
		"GET /api/v1/resourcequotas":      {text: "Lists the resource quotas of all namespaces.", answer: "ResourceQuotaList", code: 200, isList: true, example: "/api/v1/resourcequotas"},
		"GET " + in + "/{name}/status":    {text: "Shows the usage of a resource quota: metadata.name and the status of a ResourceQuota.", answer: "ResourceQuota", code: 200, gets: true, example: "/api/v1/namespaces/default/resourcequotas/team/status"},
		"GET " + trees:                    {text: "Lists the quota trees.", answer: "QuotaTreeList", code: 200, isList: true, example: trees},
		"GET " + trees + "/{tree}/status": {text: "Shows a tree as it is in force: metadata.name and the status of a QuotaTree.", answer: "QuotaTree", code: 200, gets: true, example: trees + "/company/status"},
		"POST " + trees + "/{tree}/rename": {
			text: "Renames a node of a tree. Units that run stay charged to it, and the bindings that name it follow.", body: "QuotaRename", answer: "QuotaTree", code: 200,
			refusals: map[int]string{409: "the new name is a node's, or units that run are recorded with it"}, example: trees + `/company/rename {"from": "all", "to": "everybody"}`,
		},
		"POST " + trees + "/{tree}/reclaim": {
			text: "Ends units until no node of a tree is over its quota. With dryRun nothing ends and the answer lists the units.", body: "ReclaimOptions", optional: true, answer: "QuotaReclaim", code: 200,
			extra: []string{"dryRun"}, example: trees + "/company/reclaim?dryRun=true",
		},
		"GET /api/v1/featurelevel": {text: "Shows the feature level of the cluster, and the coordinators and nodes below the newest level.", answer: "FeatureLevel", code: 200, example: "/api/v1/featurelevel"},
		"PATCH /api/v1/featurelevel": {
			text: "Raises the feature level of the cluster. Nothing lowers the level.", body: "FeatureLevelPatch", answer: "FeatureLevel", code: 200,
			refusals: map[int]string{409: "a coordinator or the agent of a node does not know the level, or the level is lower than the cluster's"}, example: `/api/v1/featurelevel {"level": 1}`,
		},
		"GET /api/v1/quota": {text: "Shows the mode of the quota trees. Each answer has a Warning header while the mode is Maintenance.", answer: "QuotaMode", code: 200, example: "/api/v1/quota"},
		"PATCH /api/v1/quota": {
			text: "Changes the mode of the quota trees. In Maintenance trees limit no new work; no unit moves or ends.", body: "QuotaModePatch", answer: "QuotaMode", code: 200,
			refusals: map[int]string{409: "the mode has another resourceVersion or uid than the patch"}, example: `/api/v1/quota {"mode": "Maintenance", "reason": "moving groups"}`,
		},
		"GET /api/v1/quotaforests":  {text: "Lists the quota forests.", answer: "QuotaForestList", code: 200, isList: true, example: "/api/v1/quotaforests"},
		"GET /api/v1/quotabindings": {text: "Lists the bindings of namespaces to quota groups.", answer: "QuotaBindingList", code: 200, isList: true, example: "/api/v1/quotabindings"},
		"POST /api/v1/quota/dryruns": {
			text: "Answers how admission would decide about a consumer now. The request has no effect.", body: "Consumer", answer: "QuotaDryRun", code: 200,
			example: `/api/v1/quota/dryruns {"kind": "Consumer", "spec": {"id": "trial-1", "trees": [{"treeName": "company", "groupID": "all", "request": {"cpu": 2}}]}}`,
		},
	}
	maps.Copy(all, documentRoutes(in, "/{name}", api.KindResourceQuota, "/api/v1/namespaces/default/resourcequotas", "team", `{"metadata": {"name": "NAME"}, "spec": {"hard": {"cpu": "64"}}}`, `{"spec": {"hard": {"cpu": "32"}}}`))
	maps.Copy(all, documentRoutes(trees, "/{tree}", api.KindQuotaTree, trees, "company", tree, `{"spec": {"nodes": {"all": {"quota": {"cpu": "16"}}}}}`))
	maps.Copy(all, documentRoutes("/api/v1/quotaforests", "/{tree}", api.KindQuotaForest, "/api/v1/quotaforests", "quota", `{"kind": "QuotaForest", "metadata": {"name": "NAME"}, "spec": {"trees": ["company"]}}`, `{"metadata": {"labels": {"team": "ops"}}}`))
	maps.Copy(all, documentRoutes("/api/v1/quotabindings", "/{namespace}", api.KindQuotaBinding, "/api/v1/quotabindings", "research", `{"kind": "QuotaBinding", "metadata": {"name": "NAME"}, "spec": {"groups": {"company": "all"}}}`, `{"spec": {"admission": "queue"}}`))
	for _, at := range []string{in, trees} {
		for _, pattern := range []string{"POST " + at, "PUT " + at + "/{name}", "PUT " + at + "/{tree}", "PATCH " + at + "/{name}", "PATCH " + at + "/{tree}"} {
			if d, found := all[pattern]; found {
				d.extra = []string{rest.AllowUnknownResources}
				all[pattern] = d
			}
		}
	}
	return all
}

// spaceRoutes describes the routes of tenants and namespaces.
func spaceRoutes() map[string]description {
	const tenants, namespaces = "/api/v1/tenants", "/api/v1/namespaces"
	all := map[string]description{
		"GET " + tenants:    {text: "Lists the tenants. A tenant gets itself alone.", answer: "TenantList", code: 200, isList: true, example: tenants},
		"GET " + namespaces: {text: "Lists the namespaces with an object. A tenant gets its own.", answer: "NamespaceList", code: 200, isList: true, example: namespaces},
	}
	maps.Copy(all, documentRoutes(tenants, "/{name}", api.KindTenant, tenants, "vision", `{"kind": "Tenant", "metadata": {"name": "NAME"}, "spec": {"displayName": "Computer Vision"}}`, `{"spec": {"owner": "ada@example.org"}}`))
	maps.Copy(all, documentRoutes(namespaces, "/{namespace}", api.KindNamespace, namespaces, "vision-dev", `{"kind": "Namespace", "metadata": {"name": "NAME"}, "spec": {"priorityCeiling": 1000}}`, `{"spec": {"admission": "queue"}}`))
	return all
}

// resourceRoutes describes the routes of the names of resources.
func resourceRoutes() map[string]description {
	const at = "/api/v1/resources"
	const patch = `{"spec": {"displayName": "Seat"}}`
	all := documentRoutes(at, "/{domain}/{name}", api.KindResource, at, "example.com/seat", `{"kind": "Resource", "metadata": {"name": "NAME"}, "spec": {"unit": "seats", "scope": "cluster"}}`, patch)
	maps.Copy(all, documentRoutes(at, "/{name}", api.KindResource, at, "seat", `{"kind": "Resource", "metadata": {"name": "NAME"}, "spec": {"unit": "seats", "scope": "cluster"}}`, patch))
	all["GET "+at] = description{text: "Lists the resources: those that are built in, those that registered nodes declare, and those that operators created, by name.", answer: "ResourceList", code: 200, isList: true, example: at}
	return all
}

// writtenRoutes describes the routes of queues and of priority classes.
func writtenRoutes() map[string]description {
	const queues, classes = "/api/v1/queues", "/api/v1/priorityclasses"
	all := map[string]description{
		"GET " + queues:  {text: "Lists the queues: the default one, those that live work names, and those that operators wrote, by name.", answer: "QueueList", code: 200, isList: true, example: queues},
		"GET " + classes: {text: "Lists the priority classes: those that are built in, and those that operators wrote, by name.", answer: "PriorityClassList", code: 200, isList: true, example: classes},
	}
	maps.Copy(all, documentRoutes(queues, "/{name}", api.KindQueue, queues, "training", `{"kind": "Queue", "metadata": {"name": "NAME"}, "spec": {"order": "Strict", "maxRunningMembers": 64}}`, `{"spec": {"state": "Hold"}}`))
	maps.Copy(all, documentRoutes(classes, "/{name}", api.KindPriorityClass, classes, "release", `{"kind": "PriorityClass", "metadata": {"name": "NAME"}, "spec": {"value": 500, "preemptionPolicy": "PreemptLowerPriority"}}`, `{"spec": {"value": 600}}`))
	return all
}

// eventRoutes describes the routes of events.
func eventRoutes() map[string]description {
	const in, all = "/api/v1/namespaces/{namespace}/events", "/api/v1/events"
	return map[string]description{
		"GET " + in:              {text: "Lists the events of the objects of a namespace, by the names of the objects. Each coordinator answers by itself, with the events since metadata.since.", answer: "EventList", code: 200, isList: true, example: "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DJob,involvedObject.name%3Dtrain"},
		"GET " + all:             {text: "Lists the events of all objects, those of nodes first.", answer: "EventList", code: 200, isList: true, example: all + "?fieldSelector=type%3DWarning"},
		"GET " + in + "/{name}":  {text: "Shows an event.", answer: "Event", code: 200, gets: true, example: "/api/v1/namespaces/default/events/train.0123456789abcdef"},
		"GET " + all + "/{name}": {text: "Shows an event of a node.", answer: "Event", code: 200, gets: true, example: all + "/gpu-1.0123456789abcdef"},
	}
}

// documentRoutes describes the routes of a kind by which quota is set, but for
// the lists. The example's object is called name; NAME in the document is replaced by name.
func documentRoutes(collection, one, kind, at, name, document, patch string) map[string]description {
	const stale = "the object has another resourceVersion than the document"
	named := func(name string) string { return strings.ReplaceAll(document, "NAME", name) }
	return map[string]description{
		"POST " + collection:         {text: "Creates a " + kind + ".", body: kind, answer: kind, code: 201, refusals: map[int]string{409: "the name is taken, or the object contradicts another object"}, example: at + " " + named("second")},
		"GET " + collection + one:    {text: "Shows a " + kind + ".", answer: kind, code: 200, gets: true, example: at + "/" + name},
		"PUT " + collection + one:    {text: "Replaces a " + kind + ", with code 200, or creates one, with code 201. A metadata.resourceVersion in the document is a precondition.", body: kind, answer: kind, code: 200, refusals: map[int]string{409: stale}, example: at + "/" + name + " " + named(name)},
		"PATCH " + collection + one:  {text: "Changes a " + kind + " by a merge patch (RFC 7386) of Content-Type application/merge-patch+json. A null removes a field.", body: kind, answer: kind, code: 200, refusals: map[int]string{409: stale}, example: at + "/" + name + " " + patch},
		"DELETE " + collection + one: {text: "Removes a " + kind + ". Units that run go on. Of the options the preconditions alone have an effect.", body: "DeleteOptions", optional: true, answer: kind, code: 200, refusals: map[int]string{409: "the object is in use, and the message says by which other object; or the preconditions do not hold"}, example: at + "/" + name},
	}
}

// credentialRoutes describes the routes of access tokens and role bindings.
func credentialRoutes() map[string]description {
	const tokens, bindings = "/api/v1/tokens", "/api/v1/rolebindings"
	all := map[string]description{
		"GET /api/v1/history/allocations":   {text: "Lists allocations and units of jobs of the past, the newest first, also those whose objects are gone. A tenant gets its own.", answer: "PastAllocationList", code: 200, extra: service.PastParameters, refusals: map[int]string{404: noHistory, 503: historyAway}, example: "/api/v1/history/allocations?namespace=default&since=2026-03-01T12:00:00Z&limit=20"},
		"GET /api/v1/history/preemptions":   {text: "Lists the preemptions of the past, the newest first. A tenant gets those of its own work.", answer: "PastPreemptionList", code: 200, extra: service.PastParameters, refusals: map[int]string{404: noHistory, 503: historyAway}, example: "/api/v1/history/preemptions?limit=20"},
		"GET /api/v1/history/events":        {text: "Lists the events of allocations of the past, the newest first. A tenant gets those of its own work.", answer: "PastEventList", code: 200, extra: service.PastParameters, refusals: map[int]string{404: noHistory, 503: historyAway}, example: "/api/v1/history/events?name=train-0&limit=20"},
		"GET /api/v1/audit":                 {text: "Lists the changes of the last 25 hours that persons have made, and the requests that this coordinator has refused, the newest first. A tenant-admin gets those of the own tenant.", answer: "AuditEntryList", code: 200, extra: service.AuditParameters, example: "/api/v1/audit?resource=allocations&namespace=default&since=2026-03-01T12:00:00Z&limit=20"},
		"GET /api/v1/history/status":        {text: "Shows how far the history in the database is, the spool of the coordinator that answers, and the gaps.", answer: "HistoryStatus", code: 200, example: "/api/v1/history/status"},
		"GET /api/v1/snapshot":              {text: "Shows the scheduling state of the cluster for muster simulate, without commands, environments and credentials.", answer: "ClusterSnapshot", code: 200, example: "/api/v1/snapshot"},
		"GET /api/v1/history/verify":        {text: "Compares nodes with their conditions, jobs, allocations, grants, waits, quotas, preemptions and the audit of the store with their rows in the history, and the slices of use of the last 6 hours, at one revision. Nothing is changed.", answer: "HistoryReport", code: 200, example: "/api/v1/history/verify"},
		"POST /api/v1/history/rebuild":      {text: "Writes the rows of the history that differ from the store anew, and answers with the differences.", answer: "HistoryReport", code: 200, example: "/api/v1/history/rebuild"},
		"POST /api/v1/history/prune":        {text: "Removes the rows of the history that are older than the periods for which their kinds are kept, as the coordinator does every 6 hours by itself. With dryRun nothing goes.", answer: "HistoryRetention", code: 200, extra: []string{"dryRun"}, refusals: map[int]string{404: noHistory, 503: historyAway}, example: "/api/v1/history/prune?dryRun=All"},
		"POST " + tokens:                    {text: "Makes an access token. The answer alone has the token itself. A tenant-admin makes tokens of the own tenant.", body: "AccessToken", answer: "AccessToken", code: 201, example: tokens + ` {"spec": {"user": "ada@example.org", "role": "editor", "tenant": "vision", "ttl": "720h"}}`},
		"GET " + tokens:                     {text: "Lists the access tokens, by name, without the tokens themselves. A tenant-admin gets those of the own tenant.", answer: "AccessTokenList", code: 200, isList: true, example: tokens},
		"GET " + tokens + "/{name}":         {text: "Shows an access token, without the token itself.", answer: "AccessToken", code: 200, example: tokens + "/at-5d1f09c2ab"},
		"DELETE " + tokens + "/{name}":      {text: "Revokes an access token. The answer comes once each live coordinator refuses the token, or after 5 s; open watches of its bearers end.", body: "DeleteOptions", optional: true, answer: "AccessToken", code: 200, refusals: map[int]string{409: "the preconditions do not hold"}, example: tokens + "/at-5d1f09c2ab"},
		"POST " + tokens + "/{name}/rotate": {text: "Gives an access token a new secret. The answer alone has the token with the new secret; the secret before is valid for the overlap.", body: "RotateOptions", optional: true, answer: "AccessToken", code: 200, refusals: map[int]string{409: "the token has expired"}, example: tokens + `/at-5d1f09c2ab/rotate {"overlap": "1h"}`},
		"GET " + bindings:                   {text: "Lists the role bindings, by name. A tenant-admin gets those of the own tenant.", answer: "RoleBindingList", code: 200, isList: true, example: bindings},
	}
	maps.Copy(all, documentRoutes(bindings, "/{name}", api.KindRoleBinding, bindings, "vision.editors", `{"kind": "RoleBinding", "metadata": {"name": "NAME"}, "spec": {"role": "editor", "tenant": "vision", "subjects": [{"kind": "User", "name": "ada@example.org"}]}}`, `{"metadata": {"labels": {"team": "vision"}}}`))
	return all
}

// identityRoutes describes the routes of tokens, certificates and bans.
func identityRoutes() map[string]description {
	const v1 = "/api/v1/"
	const requires, stale = " Of the options the preconditions alone have an effect.", "the preconditions do not hold"
	all := map[string]description{
		"POST " + v1 + "bootstraptokens":               {text: "Makes a bootstrap token. The answer alone has the token itself.", body: "BootstrapToken", answer: "BootstrapToken", code: 201, example: v1 + `bootstraptokens {"spec": {"nodes": "gpu-*", "uses": 16}}`},
		"GET " + v1 + "bootstraptokens":                {text: "Lists the bootstrap tokens, oldest first, without the tokens themselves.", answer: "BootstrapTokenList", code: 200, example: v1 + "bootstraptokens"},
		"DELETE " + v1 + "bootstraptokens/{name}":      {text: "Ends a bootstrap token." + requires, body: "DeleteOptions", optional: true, answer: "BootstrapToken", code: 200, refusals: map[int]string{409: stale}, example: v1 + "bootstraptokens/k3v9x2"},
		"GET " + v1 + "authorities":                    {text: "Lists the certificate authorities, oldest first.", answer: "AuthorityList", code: 200, example: v1 + "authorities"},
		"POST " + v1 + "authorities":                   {text: "Makes a new authority, which signs from now on.", answer: "Authority", code: 201, example: v1 + "authorities"},
		"DELETE " + v1 + "authorities/{name}":          {text: "Ends the trust in an authority." + requires, body: "DeleteOptions", optional: true, answer: "AuthorityList", code: 200, extra: []string{"force"}, refusals: map[int]string{409: "nodes have certificates by the authority, and force is not given; or " + stale}, example: v1 + "authorities/9f86d081?force=true"},
		"POST " + v1 + "operatorcertificates":          {text: "Certifies an operator for gRPC.", body: "OperatorCertificate", answer: "OperatorCertificate", code: 201, example: v1 + `operatorcertificates {"metadata": {"name": "ada"}, "spec": {"request": "-----BEGIN CERTIFICATE REQUEST-----…"}}`},
		"GET " + v1 + "operatorcertificates":           {text: "Lists the certificates of operators.", answer: "OperatorCertificateList", code: 200, example: v1 + "operatorcertificates"},
		"DELETE " + v1 + "operatorcertificates/{name}": {text: "Revokes all certificates of an operator. Preconditions are about the certificate that was changed last." + requires, body: "DeleteOptions", optional: true, answer: "OperatorCertificateList", code: 200, refusals: map[int]string{409: stale}, example: v1 + "operatorcertificates/ada"},
		"GET " + v1 + "nodebans":                       {text: "Lists the bans that stand, by node.", answer: "NodeBanList", code: 200, example: v1 + "nodebans"},
		"POST " + v1 + "nodes/{name}/ban":              {text: "Bans a node id and ends its certificate.", body: "NodeBan", optional: true, answer: "NodeBan", code: 200, example: v1 + `nodes/gpu-1/ban {"spec": {"reason": "stolen disk"}}`},
		"DELETE " + v1 + "nodes/{name}/ban":            {text: "Ends a ban. The node needs a new bootstrap token." + requires, body: "DeleteOptions", optional: true, answer: "NodeBan", code: 200, refusals: map[int]string{409: stale}, example: v1 + "nodes/gpu-1/ban"},
	}
	for pattern, d := range all {
		if d.refusals == nil {
			d.refusals = map[int]string{}
		}
		d.refusals[http.StatusNotImplemented] = "the coordinator runs without TLS and has no identities"
		all[pattern] = d
	}
	return all
}

// The refusals of questions about the past.
const (
	noHistory   = "no history is kept"
	historyAway = "the history's database does not answer"
)

// callerRoutes describes the routes that name the caller and the login.
func callerRoutes() map[string]description {
	return map[string]description{
		"GET /api/v1/whoami": {text: "Shows the caller: the user, the proof, the groups, the tenant and the roles in force. Each token may ask, one without a role too.", answer: "WhoAmI", code: 200, example: "/api/v1/whoami"},
		"GET /api/v1/login": {
			text: "Names the identity provider that people log in at, for muster login.", answer: "LoginMethod", code: 200,
			refusals: map[int]string{http.StatusNotFound: "the cluster has no identity provider"}, example: "/api/v1/login",
		},
	}
}
