// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// TestLittleIsKeptOfComposedSecrets is about tenants of the hub, who can write 256 KiB of annotations to each Secret.
func TestLittleIsKeptOfComposedSecrets(t *testing.T) {
	composed, connection := HubComposedSecretKind, crossplane.HubSecretKind
	if composed.OnlyAnnotations == "" || composed.OnlyAnnotations != connection.OnlyAnnotations ||
		composed.OnlyLabels != connection.OnlyLabels || composed.KeepController != connection.KeepController {
		t.Errorf("Want no more to be kept of composed Secrets than of connection Secrets, got %+v and %+v.", composed, connection)
	}
}
