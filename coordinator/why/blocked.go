package why

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// blocked words the rule of a queue that holds the unit back.
func (f *Facts) blocked(v Viewer) string {
	b := &f.Block
	switch b.Code {
	case QueueHeld:
		return fmt.Sprintf("its queue %s is on Hold, so nothing of the queue starts", b.Queue)
	case QueueStrict:
		return fmt.Sprintf("its queue %s is Strict, and %s is ahead and has not started", b.Queue, v.Work([]Work{b.Head}))
	}
	return fmt.Sprintf("its queue %s lets %s run: %d hold something, and the unit needs %d", b.Queue, count(b.Max, "member"), b.Running, b.Needs)
}

// Freed words the outlook of a unit that a rule of its queue holds back: the nodes do not
// matter before the rule lets it start. A unit that can never run on the nodes keeps that
// outlook.
func Freed(f *Facts) *api.Outlook {
	b := &f.Block
	if f.Outlook.Can == api.CanNever {
		return f.Outlook
	}
	switch {
	case b.Code == QueueHeld:
		return &api.Outlook{Can: api.CanLater, Message: fmt.Sprintf("It can run once an operator has opened queue %s.", b.Queue)}
	case b.Code == QueueStrict:
		return &api.Outlook{Can: api.CanLater, Message: fmt.Sprintf("It can run once the work ahead of it in queue %s has started.", b.Queue)}
	case b.Needs > b.Max:
		text := fmt.Sprintf("%s start together, and queue %s lets %d run", count(b.Needs, "member"), b.Queue, b.Max)
		return &api.Outlook{Can: api.CanNever, Reason: &resource.Reason{Code: QueueFull, Want: int64(b.Needs), Have: int64(b.Max), Detail: text}, Message: "Never by the rules of its queue: " + text + "."}
	}
	return &api.Outlook{Can: api.CanLater, Message: fmt.Sprintf("It can run once members of queue %s have ended.", b.Queue)}
}
