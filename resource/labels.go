package resource

// StartsWorkLabel is the label of the nodes whose agents start the commands of members, with
// the value StartsWorkValue. It follows from the registration, and the leader adds it to
// the node selector of members with a command.
const (
	StartsWorkLabel = "muster.dev/starts-work"
	StartsWorkValue = "true"
)

// RunsContainersLabel is the label of the nodes whose agents start commands in root file
// systems of their own, with the value RunsContainersValue. The leader adds it to the node
// selector of such members.
const (
	RunsContainersLabel = "muster.dev/runs-containers"
	RunsContainersValue = "true"
)

// MountsFoldersLabel is the label of the nodes whose agents mount folders of the host in root
// file systems, with the value MountsFoldersValue. The leader adds it to the node selector of
// members with mounts.
const (
	MountsFoldersLabel = "muster.dev/mounts-folders"
	MountsFoldersValue = "true"
)

// ScriptFailedTaint is the key of the taint of a node whose prolog or epilog has failed
// around a member of a job.
const ScriptFailedTaint = "muster.dev/script-failed"
