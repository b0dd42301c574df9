// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// besides is how many tests run in parallel.
const besides = 3

var (
	servers controllertest.Servers
	hubs    = controllertest.NewLanes(besides, func() (*envtest.Environment, error) { return servers.Start(testenv.CRDs()) })
)

func TestMain(m *testing.M) {
	controllertest.Beside(besides)
	servers.Run(m)
}

func scheme() *runtime.Scheme {
	return controllertest.NewScheme(clientgoscheme.AddToScheme, fleetv1alpha1.AddToScheme)
}
