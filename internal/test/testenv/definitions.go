// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// releasedAnnotation records when ReleaseDefinitions last changed a definition.
	releasedAnnotation = "test.masthead.dev/released"
	// releaseAfter is how long the API server is given to finish by itself: before the first change, and after each.
	releaseAfter = 10 * time.Second
)

// ReleaseDefinitions makes the API server continue with definitions whose deletion it has left unfinished. A test that
// waits until a definition is gone calls it in each poll; as long as no definition is stuck it only lists. The scheme
// of the client need not have definitions.
//
// An API server that cannot list the objects of a definition, because their storage is being set up, tries again after
// some milliseconds. If its cache does not contain its own record of the failure by then, that attempt ends with a
// conflict. As only the record has changed, there is no further attempt before the next resync, up to five minutes
// later (updateCustomResourceDefinition in k8s.io/apiextensions-apiserver/pkg/controller/finalizer; see also
// https://github.com/operator-framework/operator-controller/issues/1437). Any other change of the definition causes the
// next attempt at once.
func ReleaseDefinitions(ctx context.Context, c client.Client) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	var problems []error
	now := time.Now()
	for i := range list.Items {
		crd := &list.Items[i]
		if !stuck(crd, now) {
			continue
		}
		before := crd.DeepCopy()
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		crd.Annotations[releasedAnnotation] = now.Format(time.RFC3339)
		problems = append(problems, client.IgnoreNotFound(c.Patch(ctx, crd, client.MergeFrom(before))))
	}
	return errors.Join(problems...)
}

// stuck is whether a definition has been in deletion for a while, and ReleaseDefinitions has not changed it recently.
func stuck(crd *metav1.PartialObjectMetadata, now time.Time) bool {
	if crd.DeletionTimestamp.IsZero() || now.Sub(crd.DeletionTimestamp.Time) < releaseAfter {
		return false
	}
	released, err := time.Parse(time.RFC3339, crd.Annotations[releasedAnnotation])
	return err != nil || now.Sub(released) >= releaseAfter
}
