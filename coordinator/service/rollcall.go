package service

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/musterd/muster/api"
)

// rollCall bounds how long the other coordinators may take to answer.
const rollCall = time.Second

// RollCall shows every coordinator: this one, and the others as they answer now.
// ask asks the coordinator at a REST address for its state.
func RollCall(ctx context.Context, roster Roster, ask func(ctx context.Context, address string) (api.Coordinator, error)) *api.CoordinatorList {
	self := roster.Self()
	items := roster.Candidates()
	ctx, cancel := context.WithTimeout(ctx, rollCall)
	defer cancel()
	var wg sync.WaitGroup
	present := false
	for i := range items {
		if items[i].ID == self.ID {
			present, items[i] = true, filled(items[i], self)
			continue
		}
		wg.Go(func() {
			said, err := ask(ctx, items[i].REST)
			if err != nil {
				items[i].Message = "does not answer: " + err.Error()
				return
			}
			items[i] = filled(items[i], said)
		})
	}
	wg.Wait()
	if !present {
		items = append(items, self)
	}
	newest := int64(0)
	for _, i := range items {
		newest = max(newest, i.Revision)
	}
	for i := range items {
		if items[i].Revision > 0 {
			items[i].Behind = newest - items[i].Revision
		}
	}
	return &api.CoordinatorList{Kind: "CoordinatorList", Items: items}
}

// filled joins the store's record of a coordinator and its own status.
func filled(known, said api.Coordinator) api.Coordinator {
	said.REST, said.GRPC, said.Epoch = cmp.Or(known.REST, said.REST), cmp.Or(known.GRPC, said.GRPC), cmp.Or(said.Epoch, known.Epoch)
	return said
}
