# expect: none
import requests
from requests.adapters import HTTPAdapter, Retry
s = requests.Session()
s.mount("https://", HTTPAdapter(max_retries=Retry(3)))
