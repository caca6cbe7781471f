"""The pages and who may see them."""

import streamlit as st

from app.components.chrome import STATIC, dress, listen_for_keys
from app.components.who import who

st.set_page_config(page_title="Showhow", page_icon=str(STATIC / "icon.svg"), layout="wide")
dress()
person = who()
pages = [st.Page("annotate.py", title="Annotate", icon=":material/edit_note:", default=True)]
pages.append(st.Page("ask.py", title="Ask", icon=":material/forum:"))
if {"reviewer", "admin"} & set(person.roles):
    pages.append(st.Page("review.py", title="Review", icon=":material/rule:"))
pages.append(st.Page("library.py", title="Library", icon=":material/auto_stories:"))
pages.append(st.Page("verify.py", title="Verify", icon=":material/fact_check:"))
pages.append(st.Page("worlds.py", title="Worlds", icon=":material/public:"))
pages.append(st.Page("tools.py", title="Tools", icon=":material/build:"))
st.navigation(pages, position="top").run()
listen_for_keys()
