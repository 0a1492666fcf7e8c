# expect: none
seen = set()

def crawl(urls, fetch):
    for u in urls:
        if u in seen:
            continue
        seen.add(u)
        yield fetch(u)
