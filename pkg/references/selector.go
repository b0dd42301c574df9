// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// maxSelections is how many selectors the references of an object can have, each of which is a list request.
// maxSelected is how many objects are listed for one, and maxNamed how many of them an error names.
const (
	maxSelections = 32
	maxSelected   = 10
	maxNamed      = 3
)

// selection is a selector among the objects of a Source without a name.
type selection struct {
	among  Source
	labels string
}

// selected is the only object of a selection, or why there is none.
type selected struct {
	name string
	err  *Error
}

// selected returns the name of the only object with some labels. The errors reveal how many there are, and some of
// their names. So an object selects in its own namespace, whose objects it may reference all: a grant of another one
// may be for some names. Of cluster-scoped objects, which it may reference if it knows their names, no name is
// revealed. Secrets are not selected at all.
func (p *pass) selected(ctx context.Context, among Source, matchLabels map[string]string) (string, *Error) {
	own, from := p.req.Object.GetNamespace(), p.req.Object.GroupVersionKind().GroupKind()
	failed := &Error{Source: among.String()}
	selector, err := labels.ValidatedSelectorFromSet(matchLabels)
	switch {
	case err != nil:
		failed.Reason, failed.Cause = commonv1alpha1.ReasonInvalidReference, fmt.Errorf("the selector is not valid: %w", err)
	case selector.Empty():
		failed.Reason, failed.Cause = commonv1alpha1.ReasonInvalidReference, errors.New("the selector has no labels")
	case isSecret(among.GroupResource()):
		failed.Reason, failed.Cause = commonv1alpha1.ReasonSecretNotPermitted, errors.New("objects that are Secrets are not selected by labels")
	case own != "" && among.Namespace != "" && among.Namespace != own:
		failed.Reason, failed.Cause = commonv1alpha1.ReasonNotPermitted, errors.New("objects of other namespaces are not selected by labels")
	default:
		failed = p.permit(ctx, from, own, among)
	}
	if failed != nil {
		return "", failed
	}
	p.needs.selected = true
	key := selection{among, selector.String()}
	out, known := p.selections[key]
	if !known && len(p.selections) >= maxSelections {
		failed = &Error{Reason: commonv1alpha1.ReasonInvalidReference, Source: among.String()}
		failed.Cause = fmt.Errorf("the references of an object can have at most %d selectors", maxSelections)
		return "", failed
	}
	if !known {
		out.name, out.err = p.only(ctx, among, selector)
		p.selections[key] = out
	}
	return out.name, out.err
}

// only returns the name of the only object that a selector selects.
func (p *pass) only(ctx context.Context, among Source, selector labels.Selector) (string, *Error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(among.GroupVersion().WithKind(among.Kind + "List"))
	err := p.req.Reader.List(ctx, list, client.InNamespace(among.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxSelected))
	if err != nil {
		return "", &Error{Reason: errorReason(err), Source: among.String(), Cause: brief(err)}
	}
	var names []string
	for i := range list.Items {
		// API servers of clusters need not answer what was requested.
		o := &list.Items[i]
		if o.Namespace == among.Namespace && selector.Matches(labels.Set(o.Labels)) && len(validIn(o.Name)) == 0 {
			names = append(names, o.Name)
		}
	}
	failed := &Error{Source: among.String() + " with " + condition.Text(selector.String(), maxText)}
	switch {
	case len(names) == 1 && list.Continue == "":
		return names[0], nil
	case len(names) < 2 && list.Continue != "":
		failed.Reason, failed.Cause = commonv1alpha1.ReasonUnavailable, errors.New("the API server answered with a part of the objects")
	case len(names) == 0:
		failed.Reason, failed.Cause = commonv1alpha1.ReasonSourceNotFound, errors.New("no object has these labels")
	default:
		shown, more := names, ""
		if len(names) > maxNamed {
			shown, more = names[:maxNamed], " and more"
		}
		failed.Reason, failed.Cause = commonv1alpha1.ReasonAmbiguous, errors.New("several objects have these labels")
		if among.Namespace == p.req.Object.GetNamespace() {
			failed.Cause = fmt.Errorf("several objects have these labels: %s", strings.Join(shown, ", ")+more)
		}
	}
	return "", failed
}
