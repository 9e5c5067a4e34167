package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// Namespace is where submissions go that name none.
const Namespace = "default"

// Submission is what a test asks for.
type Submission struct {
	Namespace string // "" is Namespace
	Name      string
	GPUs      int // of each member, with a core and 1Gi for each
	Priority  int32
	// Class replaces the number as priority where it is set.
	Class        string
	TTL          string           // makes it terminating
	Policy       string           // preemptionPolicy
	Quota        *api.QuotaDemand // which groups it is charged to
	NodeSelector map[string]string
	RequestID    string
	Wait         time.Duration
	// Of a job: Members as parallelism, Gang as minMembers; Gang 0 is no gang.
	Members, Gang int
}

func (s Submission) create(document any) (service.Create, []byte) {
	b, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return service.Create{Namespace: s.namespace(), Document: b, RequestID: s.RequestID, Wait: s.Wait, Repeated: new(bool)}, b
}

func (s Submission) namespace() string {
	if s.Namespace == "" {
		return Namespace
	}
	return s.Namespace
}

func (s Submission) spec() map[string]any {
	spec := map[string]any{"resources": map[string]any{"requests": map[string]string{
		string(resource.GPU): fmt.Sprint(s.GPUs), "cpu": fmt.Sprint(s.GPUs), "memory": fmt.Sprintf("%dGi", s.GPUs),
	}}}
	if s.TTL != "" {
		spec["ttl"] = s.TTL
	}
	if s.Policy != "" {
		spec["preemptionPolicy"] = s.Policy
	}
	if s.Quota != nil {
		spec["quota"] = s.Quota
	}
	if s.NodeSelector != nil {
		spec["scheduling"] = map[string]any{"nodeSelector": s.NodeSelector}
	}
	return spec
}

// prioritize sets the priority in a specification of an allocation or a job.
func (s Submission) prioritize(spec map[string]any) {
	if s.Class != "" {
		spec["priorityClass"] = s.Class
		return
	}
	spec["priority"] = s.Priority
}

// Allocate submits an allocation and reports whether it was a repetition.
func (k *Coordinator) Allocate(ctx context.Context, s Submission) (a *api.Allocation, repeated bool, err error) {
	spec := s.spec()
	s.prioritize(spec)
	create, document := s.create(map[string]any{"kind": "Allocation", "metadata": map[string]any{"name": s.Name}, "spec": spec})
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		return nil, false, status
	}
	a, err = k.CreateAllocation(ctx, create, doc)
	return a, *create.Repeated, err
}

// Job submits a job and reports whether it was a repetition.
func (k *Coordinator) Job(ctx context.Context, s Submission) (j *api.Job, repeated bool, err error) {
	spec := s.spec()
	if s.Gang > 0 {
		scheduling := map[string]any{"gangScheduling": map[string]any{"minMembers": s.Gang}}
		if s.NodeSelector != nil {
			scheduling["nodeSelector"] = s.NodeSelector
		}
		spec["scheduling"] = scheduling
	}
	job := map[string]any{"parallelism": s.Members, "template": map[string]any{"spec": spec}}
	s.prioritize(job)
	create, document := s.create(map[string]any{"kind": "Job", "metadata": map[string]any{"name": s.Name}, "spec": job})
	doc, status := api.DecodeJob(document)
	if status != nil {
		return nil, false, status
	}
	j, err = k.CreateJob(ctx, create, doc)
	return j, *create.Repeated, err
}

// Code is the HTTP code of an API error, 0 for none or another error.
func Code(err error) int {
	var status *api.Status
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}
