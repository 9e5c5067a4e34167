package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
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
	RequestID string
	Wait      time.Duration
	// Of a job: Members as parallelism, Gang as minMembers; Gang 0 is no gang.
	Members, Gang int
}

func (s Submission) create(document any) (rest.Create, []byte) {
	b, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return rest.Create{Namespace: s.namespace(), Document: b, RequestID: s.RequestID, Wait: s.Wait, Repeated: new(bool)}, b
}

func (s Submission) namespace() string {
	if s.Namespace == "" {
		return Namespace
	}
	return s.Namespace
}

func (s Submission) spec() map[string]any {
	return map[string]any{"resources": map[string]any{"requests": map[string]string{
		string(resource.GPU): fmt.Sprint(s.GPUs), "cpu": fmt.Sprint(s.GPUs), "memory": fmt.Sprintf("%dGi", s.GPUs),
	}}}
}

// Allocate submits an allocation and reports whether it was a repetition.
func (k *Coordinator) Allocate(ctx context.Context, s Submission) (a *api.Allocation, repeated bool, err error) {
	spec := s.spec()
	spec["priority"] = s.Priority
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
		spec["scheduling"] = map[string]any{"gangScheduling": map[string]any{"minMembers": s.Gang}}
	}
	create, document := s.create(map[string]any{"kind": "Job", "metadata": map[string]any{"name": s.Name}, "spec": map[string]any{
		"parallelism": s.Members, "priority": s.Priority, "template": map[string]any{"spec": spec},
	}})
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
