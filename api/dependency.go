package api

import "fmt"

// MaxDependencies bounds the dependencies of a job.
const MaxDependencies = 64

// The types of a JobDependency, in Slurm's words.
const (
	DependAfter      = "after"
	DependAfterOK    = "afterok"
	DependAfterNotOK = "afternotok"
	DependAfterAny   = "afterany"
)

// JobDependency is a condition on another job. The job with the dependency waits until
// the condition has come true, and fails with DependencyNeverSatisfied once it cannot
// come true any more.
type JobDependency struct {
	// Type is the condition: after waits until the other job has begun to run or has
	// ended, afterok until it has succeeded, afternotok until it has ended as Failed,
	// Cancelled or Preempted, and afterany until it has ended.
	Type string `json:"type" required:"true" oneof:"after,afterok,afternotok,afterany" example:"afterok"`
	// Job is the name of the other job, in the same namespace. Where there is no such
	// job, the condition waits until there is.
	Job string `json:"job" required:"true" example:"prepare"`
}

// JobDependencyStatus is how far a dependency of a job is.
type JobDependencyStatus struct {
	// Type is the condition, as in spec.dependencies.
	Type string `json:"type" example:"afterok"`
	// Job is the name of the other job.
	Job string `json:"job" example:"prepare"`
	// State is Waiting, or Satisfied for good. A job that has ended before has
	// dependencies that are Unsatisfied.
	State string `json:"state" oneof:"Waiting,Satisfied,Unsatisfied" example:"Waiting"`
}

// The states of a JobDependencyStatus.
const (
	DependencyWaits       = "Waiting"
	DependencySatisfied   = "Satisfied"
	DependencyUnsatisfied = "Unsatisfied"
)

// String is the dependency as muster run takes it.
func (d JobDependency) String() string { return d.Type + ":" + d.Job }

// checkDependencies validates the dependencies of a job by themselves.
func checkDependencies(j *Job) *Status {
	var faults faults
	list := j.Spec.Dependencies
	faults.add(atMost("spec.dependencies", len(list), MaxDependencies))
	seen := map[JobDependency]int{}
	for i, d := range list[:min(len(list), MaxDependencies)] {
		path := fmt.Sprintf("spec.dependencies[%d]", i)
		switch d.Type {
		case "":
			faults.add(invalid(path+".type", "required: want after, afterok, afternotok or afterany"))
		default:
			faults.add(checkWord(path+".type", d.Type, DependAfter, DependAfterOK, DependAfterNotOK, DependAfterAny))
		}
		first, again := seen[d]
		switch {
		case d.Job == "":
			faults.add(invalid(path+".job", "required: the name of a job in the same namespace"))
		case len(d.Job) > MaxJobName || !IsSubdomain(d.Job):
			faults.add(invalid(path+".job", "%q is not a name of a job: "+subdomainRule, clip(d.Job), MaxJobName))
		case d.Job == j.Metadata.Name:
			faults.add(invalid(path+".job", "%q: a job cannot wait for itself", clip(d.Job)))
		case again:
			faults.add(invalid(path, "%s is spec.dependencies[%d] already: keep one", clip(d.String()), first))
		}
		seen[d] = i
	}
	return faults.status()
}
