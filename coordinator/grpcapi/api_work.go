package grpcapi

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// waitOf reads the time that a call wants to wait.
func waitOf(d *durationpb.Duration) (time.Duration, *api.Status) {
	if d == nil {
		return 0, nil
	}
	if wait := d.AsDuration(); d.IsValid() && wait >= 0 && wait <= service.MaxWait {
		return wait, nil
	}
	return 0, api.Errorf(http.StatusBadRequest, "wait: %s is outside 0s..%s", d.AsDuration(), service.MaxWait)
}

// reading is the context of a get that shows the state that resource_version asks for.
func reading(ctx context.Context, r *apiv1.GetRequest) (context.Context, *api.Status) {
	want, err := service.ParseAsOf(r.GetResourceVersion())
	if err != nil {
		return ctx, api.Errorf(http.StatusBadRequest, "resource_version=%q: %v", service.Clip(r.GetResourceVersion()), err)
	}
	return service.WithAsOf(ctx, want), nil
}

// newestAlone refuses a resource_version where an answer is of the newest state alone, as
// REST refuses the parameter there.
func newestAlone(r *apiv1.GetRequest) *api.Status {
	if v := r.GetResourceVersion(); v != "" {
		return api.Errorf(http.StatusBadRequest, "resource_version=%q: this call shows the newest state alone; leave it out", service.Clip(v))
	}
	return nil
}

// submission has the fields that the requests for creations have in common.
type submission interface {
	GetNamespace() string
	GetWait() *durationpb.Duration
	GetIdempotencyKey() string
}

// submitted reads the namespace, the wait and the key of a creation. The object
// is in the namespace that the request names, or else its metadata.
func (a *API) submitted(ctx context.Context, kind service.Kind, r submission, given string) (service.Create, *api.Status) {
	c := service.Create{Namespace: r.GetNamespace(), RequestID: r.GetIdempotencyKey(), Repeated: new(bool)}
	switch {
	case c.Namespace == "":
		c.Namespace = given
	case given != "" && given != c.Namespace:
		return c, api.Errorf(http.StatusBadRequest, "metadata.namespace: %q does not match the namespace %q of the request", service.Clip(given), service.Clip(c.Namespace))
	}
	if c.Namespace == "" {
		return c, api.Errorf(http.StatusBadRequest, "namespace: required")
	}
	status := a.may(ctx, service.VerbCreate, kind, c.Namespace)
	if status == nil {
		status = service.CheckKey(c.RequestID)
	}
	if status == nil {
		c.Wait, status = waitOf(r.GetWait())
	}
	return c, status
}

// repeated says in a header that an earlier call has made the object.
func repeated(ctx context.Context, c service.Create) {
	if *c.Repeated {
		_ = grpc.SetHeader(ctx, metadata.Pairs("muster-repeated", "true")) // fails only outside of a call
	}
}

// explainOptions are the caller's.
func explainOptions(ctx context.Context, everyNode bool) service.ExplainOptions {
	return service.ExplainOptions{Operator: caller(ctx).Everywhere(service.Tenants), EveryNode: everyNode}
}

// patchOf is the JSON of a merge patch.
func patchOf(m *structpb.Struct) ([]byte, *api.Status) {
	if m == nil {
		return nil, api.Errorf(http.StatusBadRequest, "patch: required")
	}
	document, err := documentOf(m)
	if err != nil {
		return nil, api.Errorf(http.StatusBadRequest, "patch: %v", err)
	}
	return document, nil
}

// workPatch reads a patch of an allocation or a job.
func (a *API) workPatch(ctx context.Context, kind service.Kind, name string, r *apiv1.PatchRequest) (p api.WorkPatch, status *api.Status) {
	if status = a.in(ctx, service.VerbPatch, kind, r.GetNamespace(), r.GetName()); status != nil {
		return p, status
	}
	patch, status := patchOf(r.GetPatch())
	if status != nil {
		return p, status
	}
	return api.DecodeWorkPatch(name, r.GetNamespace(), r.GetName(), patch)
}

// deletion reads the options of a deletion.
func (a *API) deletion(ctx context.Context, verb service.Verb, kind service.Kind, r *apiv1.DeleteRequest) (o api.DeleteOptions, status *api.Status) {
	if status = a.in(ctx, verb, kind, r.GetNamespace(), r.GetName()); status != nil || r.GetOptions() == nil {
		return o, status
	}
	o, _, status = decoded(r.GetOptions(), api.DecodeDeleteOptions)
	return o, status
}

// allocations implements muster.api.v1.Allocations.
type allocations struct {
	apiv1.UnimplementedAllocationsServer
	a *API
}

func (s allocations) submitted(ctx context.Context, r *apiv1.CreateAllocationRequest) (*api.Allocation, service.Create, *api.Status) {
	c, status := s.a.submitted(ctx, service.KindAllocations, r, r.GetAllocation().GetMetadata().GetNamespace())
	if status != nil {
		return nil, c, status
	}
	v, document, status := decoded(r.GetAllocation(), api.DecodeAllocation)
	if status == nil {
		status = caller(ctx).CheckPriority(v.Spec.Priority, v.Spec.PriorityClass)
	}
	if status != nil {
		return nil, c, status
	}
	c.Document, v.Metadata.Namespace = document, c.Namespace
	return v, c, nil
}

// Create implements apiv1.AllocationsServer.
func (s allocations) Create(ctx context.Context, r *apiv1.CreateAllocationRequest) (*apiv1.Allocation, error) {
	v, c, status := s.submitted(ctx, r)
	if status != nil {
		return nil, status
	}
	warn(ctx, v.RecordedOnly())
	got, err := s.a.Service.CreateAllocation(ctx, c, v)
	repeated(ctx, c)
	return answered(service.TypedAllocation(got), err, new(apiv1.Allocation))
}

// Try implements apiv1.AllocationsServer.
func (s allocations) Try(ctx context.Context, r *apiv1.CreateAllocationRequest) (*apiv1.Explanation, error) {
	v, c, status := s.submitted(ctx, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.TryAllocation(ctx, c, v, explainOptions(ctx, false))
	return answered(got, err, new(apiv1.Explanation))
}

// Get implements apiv1.AllocationsServer.
func (s allocations) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Allocation, error) {
	status := s.a.in(ctx, service.VerbGet, service.KindAllocations, r.GetNamespace(), r.GetName())
	wait, wrong := waitOf(r.GetWait())
	ctx, odd := reading(ctx, r)
	if status := first(status, wrong, odd); status != nil {
		return nil, status
	}
	got, err := s.a.Service.GetAllocation(ctx, r.GetNamespace(), r.GetName(), wait)
	return answered(service.TypedAllocation(got), err, new(apiv1.Allocation))
}

// List implements apiv1.AllocationsServer.
func (s allocations) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.AllocationList, error) {
	items, meta, err := page(ctx, s.a, s.a.may(ctx, service.VerbList, service.KindAllocations, r.GetNamespace()), service.ListedAllocations, r,
		func(q *service.Selection) ([]api.Allocation, api.ListMeta, string, error) {
			return service.ListAllocations(ctx, s.a.Service, r.GetNamespace(), q)
		}, func() *apiv1.Allocation { return new(apiv1.Allocation) })
	if err != nil {
		return nil, err
	}
	return &apiv1.AllocationList{Kind: "AllocationList", Metadata: meta, Items: items}, nil
}

// Patch implements apiv1.AllocationsServer.
func (s allocations) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Allocation, error) {
	p, status := s.a.workPatch(ctx, service.KindAllocations, api.KindAllocation, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PatchAllocation(ctx, r.GetNamespace(), r.GetName(), p)
	return answered(service.TypedAllocation(got), err, new(apiv1.Allocation))
}

// Delete implements apiv1.AllocationsServer.
func (s allocations) Delete(ctx context.Context, r *apiv1.DeleteRequest) (*apiv1.Allocation, error) {
	o, status := s.a.deletion(ctx, service.VerbDelete, service.KindAllocations, r)
	if status != nil {
		return nil, status
	}
	if r.GetDryRun() {
		return s.untouched(ctx, r)
	}
	got, err := s.a.Service.DeleteAllocation(ctx, r.GetNamespace(), r.GetName(), o)
	return answered(service.TypedAllocation(got), err, new(apiv1.Allocation))
}

// untouched is the answer to a dry run of a deletion: the allocation as it is, or
// the refusal that the deletion would get.
func (s allocations) untouched(ctx context.Context, r *apiv1.DeleteRequest) (*apiv1.Allocation, error) {
	got, err := s.a.Service.GetAllocation(ctx, r.GetNamespace(), r.GetName(), 0)
	if err == nil {
		if status := service.Deletable(got); status != nil {
			return nil, status
		}
	}
	return answered(service.TypedAllocation(got), err, new(apiv1.Allocation))
}

// Explain implements apiv1.AllocationsServer.
func (s allocations) Explain(ctx context.Context, r *apiv1.ExplainRequest) (*apiv1.Explanation, error) {
	if status := s.a.in(ctx, service.VerbExplain, service.KindAllocations, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Service.ExplainAllocation(ctx, r.GetNamespace(), r.GetName(), explainOptions(ctx, r.GetEveryNode()))
	return answered(service.TypedExplanation(got), err, new(apiv1.Explanation))
}

// ExplainQuota implements apiv1.AllocationsServer.
func (s allocations) ExplainQuota(ctx context.Context, r *apiv1.GetRequest) (*apiv1.QuotaExplanation, error) {
	return s.a.explainQuota(ctx, service.KindAllocations, r)
}

func (a *API) explainQuota(ctx context.Context, kind service.Kind, r *apiv1.GetRequest) (*apiv1.QuotaExplanation, error) {
	if status := a.in(ctx, service.VerbExplain, kind, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	if odd := newestAlone(r); odd != nil {
		return nil, odd
	}
	got, err := a.Service.ExplainQuota(ctx, r.GetNamespace(), r.GetName())
	if err == nil {
		got.Kind = "QuotaExplanation"
	}
	return answered(got, err, new(apiv1.QuotaExplanation))
}

// Preempt implements apiv1.AllocationsServer.
func (s allocations) Preempt(ctx context.Context, r *apiv1.PreemptRequest) (*apiv1.Preemption, error) {
	if r.GetNamespace() == "" {
		return nil, api.Errorf(http.StatusBadRequest, "namespace: required")
	}
	if status := s.a.may(ctx, service.VerbCreate, service.KindPreemptions, r.GetNamespace()); status != nil {
		return nil, status
	}
	p, _, status := decoded(r.GetPreemption(), api.DecodePreemption)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PreemptAllocation(ctx, r.GetNamespace(), service.Notice(p, caller(ctx)))
	return answered(got, err, new(apiv1.Preemption))
}

// jobs implements muster.api.v1.Jobs.
type jobs struct {
	apiv1.UnimplementedJobsServer
	a *API
}

func (s jobs) submitted(ctx context.Context, r *apiv1.CreateJobRequest) (*api.Job, service.Create, *api.Status) {
	c, status := s.a.submitted(ctx, service.KindJobs, r, r.GetJob().GetMetadata().GetNamespace())
	if status != nil {
		return nil, c, status
	}
	v, document, status := decoded(r.GetJob(), api.DecodeJob)
	if status == nil {
		status = caller(ctx).CheckPriority(v.Spec.Priority, v.Spec.PriorityClass)
	}
	if status != nil {
		return nil, c, status
	}
	c.Document, v.Metadata.Namespace = document, c.Namespace
	return v, c, nil
}

// Create implements apiv1.JobsServer.
func (s jobs) Create(ctx context.Context, r *apiv1.CreateJobRequest) (*apiv1.Job, error) {
	v, c, status := s.submitted(ctx, r)
	if status != nil {
		return nil, status
	}
	warn(ctx, v.RecordedOnly())
	got, err := s.a.Service.CreateJob(ctx, c, v)
	repeated(ctx, c)
	return answered(service.TypedJob(got), err, new(apiv1.Job))
}

// Try implements apiv1.JobsServer.
func (s jobs) Try(ctx context.Context, r *apiv1.CreateJobRequest) (*apiv1.Explanation, error) {
	v, c, status := s.submitted(ctx, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.TryJob(ctx, c, v, explainOptions(ctx, false))
	return answered(got, err, new(apiv1.Explanation))
}

// Get implements apiv1.JobsServer.
func (s jobs) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Job, error) {
	status := s.a.in(ctx, service.VerbGet, service.KindJobs, r.GetNamespace(), r.GetName())
	wait, wrong := waitOf(r.GetWait())
	ctx, odd := reading(ctx, r)
	if status := first(status, wrong, odd); status != nil {
		return nil, status
	}
	got, err := s.a.Service.GetJob(ctx, r.GetNamespace(), r.GetName(), wait)
	return answered(service.TypedJob(got), err, new(apiv1.Job))
}

// List implements apiv1.JobsServer.
func (s jobs) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.JobList, error) {
	items, meta, err := page(ctx, s.a, s.a.may(ctx, service.VerbList, service.KindJobs, r.GetNamespace()), service.ListedJobs, r,
		func(q *service.Selection) ([]api.Job, api.ListMeta, string, error) {
			return service.ListJobs(ctx, s.a.Service, r.GetNamespace(), q)
		}, func() *apiv1.Job { return new(apiv1.Job) })
	if err != nil {
		return nil, err
	}
	return &apiv1.JobList{Kind: "JobList", Metadata: meta, Items: items}, nil
}

// Patch implements apiv1.JobsServer.
func (s jobs) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Job, error) {
	p, status := s.a.workPatch(ctx, service.KindJobs, api.KindJob, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PatchJob(ctx, r.GetNamespace(), r.GetName(), p)
	return answered(service.TypedJob(got), err, new(apiv1.Job))
}

// Cancel implements apiv1.JobsServer.
func (s jobs) Cancel(ctx context.Context, r *apiv1.DeleteRequest) (*apiv1.Job, error) {
	o, status := s.a.deletion(ctx, service.VerbCancel, service.KindJobs, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.CancelJob(ctx, r.GetNamespace(), r.GetName(), o)
	return answered(service.TypedJob(got), err, new(apiv1.Job))
}

// Boost implements apiv1.JobsServer.
func (s jobs) Boost(ctx context.Context, r *apiv1.BoostRequest) (*apiv1.Boost, error) {
	if status := s.a.on(ctx, service.VerbBoost, service.KindJobs, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	o, _, status := decoded(r.GetBoost(), api.DecodeBoostOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.BoostJob(ctx, r.GetNamespace(), r.GetName(), o)
	return answered(got, err, new(apiv1.Boost))
}

// Delete implements apiv1.JobsServer.
func (s jobs) Delete(ctx context.Context, r *apiv1.DeleteRequest) (*apiv1.Job, error) {
	o, status := s.a.deletion(ctx, service.VerbDelete, service.KindJobs, r)
	if status != nil {
		return nil, status
	}
	if r.GetDryRun() {
		got, err := s.a.Service.GetJob(ctx, r.GetNamespace(), r.GetName(), 0)
		return answered(service.TypedJob(got), err, new(apiv1.Job))
	}
	got, err := s.a.Service.DeleteJob(ctx, r.GetNamespace(), r.GetName(), o)
	return answered(service.TypedJob(got), err, new(apiv1.Job))
}

// Explain implements apiv1.JobsServer.
func (s jobs) Explain(ctx context.Context, r *apiv1.ExplainRequest) (*apiv1.Explanation, error) {
	if status := s.a.in(ctx, service.VerbExplain, service.KindJobs, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Service.ExplainJob(ctx, r.GetNamespace(), r.GetName(), explainOptions(ctx, r.GetEveryNode()))
	return answered(service.TypedExplanation(got), err, new(apiv1.Explanation))
}

// ExplainQuota implements apiv1.JobsServer.
func (s jobs) ExplainQuota(ctx context.Context, r *apiv1.GetRequest) (*apiv1.QuotaExplanation, error) {
	return s.a.explainQuota(ctx, service.KindJobs, r)
}
