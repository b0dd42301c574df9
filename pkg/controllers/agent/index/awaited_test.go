// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestFewAwaitedSecretsAreWatched(t *testing.T) {
	w := idleCluster(t, "w1", Identity{})
	kind := ownershiptest.InBar("").Kind
	asking := func(i int) multicluster.ObjectRequest {
		return multicluster.ObjectRequest{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: fmt.Sprint(i)}}
	}
	secret := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "foo", Name: fmt.Sprint("secret-", i)}
	}
	for i := range 2 * maxAwaitedSecrets {
		w.AwaitSecrets(asking(i), secret(i))
	}
	if got := len(w.awaited.watched); got != maxAwaitedSecrets {
		t.Errorf("want %d Secrets to be watched, got %d", maxAwaitedSecrets, got)
	}
	w.AwaitSecrets(asking(0))
	w.AwaitSecrets(asking(maxAwaitedSecrets), secret(maxAwaitedSecrets))
	if !w.awaited.isWatched(AwaitedSecretKind(secret(maxAwaitedSecrets))) || w.awaited.isWatched(AwaitedSecretKind(secret(0))) {
		t.Error("want the place of one that is not waited for to go to one that is requested again")
	}
	// Of two requests that wait for the same Secret, one stops.
	w.AwaitSecrets(asking(1), secret(2))
	w.AwaitSecrets(asking(2))
	if !w.awaited.isWatched(AwaitedSecretKind(secret(2))) {
		t.Error("want a Secret to be watched as long as one claim waits for it")
	}
	w.ForgetAwaiting(func(multicluster.ObjectRequest) bool { return true })
	if n := len(w.awaited.watched) + len(w.awaited.keys) + len(w.awaited.requests); n != 0 {
		t.Errorf("want nothing to be left, got %d", n)
	}
}
