module github.com/masthead-dev/masthead/hack/webhooks/verdict

go 1.26.0
