package why

import (
	"strings"

	"github.com/musterd/muster/api"
)

// Resume is the code of the help for a suspended unit: its owner resumes it.
const Resume = "Resume"

// Resumed words the outlook of a suspended unit, and the help: never is no answer
// while the owner alone keeps the unit from running. The outlook without the
// suspension is that of the facts.
func Resumed(f *Facts) (*api.Outlook, []api.Help) {
	then := "it would wait"
	switch f.Outlook.Can {
	case api.CanNow:
		then = "there is room for it now"
	case api.CanNever:
		then = "as things are it would wait: " + f.Outlook.Reason.Detail
	}
	where := strings.ToLower(f.Object) + "/" + f.Name + " -n " + f.Namespace
	return &api.Outlook{Can: api.CanLater, Message: "It can run once it is resumed."},
		[]api.Help{{Code: Resume, Message: "muster resume " + where + ": " + then}}
}
