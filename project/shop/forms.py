"""The order form: what the shop sells, and a card that works, works late or never works."""

from django import forms

from project.shop.models import Order

CARDS = [
    ("0", "a card that works"),
    ("2", "a card that is declined twice, then works"),
    ("99", "a card that is always declined"),
]


class OrderForm(forms.ModelForm):
    """An order and how many times the card gateway declines it."""

    quantity = forms.IntegerField(min_value=1, max_value=99, initial=1)
    declines = forms.TypedChoiceField(label="Pay with", choices=CARDS, coerce=int, initial="0")

    class Meta:
        model = Order
        fields = ["email", "product", "quantity"]
