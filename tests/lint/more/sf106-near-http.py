# expect: none
import requests
def get_state(url):
    try:
        return requests.get(url).json()
    except requests.RequestException:
        return {}
