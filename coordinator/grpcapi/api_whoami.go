package grpcapi

import (
	"context"

	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// whoAmIs implements muster.api.v1.WhoAmIs.
type whoAmIs struct {
	apiv1.UnimplementedWhoAmIsServer
	a *API
}

// Get implements apiv1.WhoAmIsServer.
func (s whoAmIs) Get(ctx context.Context, _ *apiv1.GetWhoAmIRequest) (*apiv1.WhoAmI, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindWhoAmI, ""); status != nil {
		return nil, status
	}
	return answered(service.WhoAmI(caller(ctx)), nil, new(apiv1.WhoAmI))
}
